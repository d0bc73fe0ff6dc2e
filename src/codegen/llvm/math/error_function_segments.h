// erf as a piecewise polynomial of sixteen segments, for processors with table lookups in registers.
//
// Segment k is what is nearest to k 17/64: erf(center + t) = terms[0] + (t + t (terms[1] + terms[2] t + ... + terms[6]
// t^5)). Centers were chosen near these points so that erf there, and its slope, are nearly numbers of float32; each
// term is the first of a least-squares fit of those that are left, rounded, errors weighted by units in the last place
// of erf. The last segment is 1. With fused operations the error is up to 0.83 units in the last place.
#pragma once

#include <array>

namespace tilewright::codegen::math {

inline constexpr double kPiecesOfErf = 64.0 / 17;  ///< for a step of 1
inline constexpr std::array<float, 16> kCentersOfErf = {
    {0.0F, 0.26681972F, 0.5298209F, 0.79846853F, 1.0632286F, 1.3277515F, 1.5901603F, 1.856913F, 2.1215918F, 2.3915625F,
     2.6525967F, 2.921858F, 3.1873415F, 3.449125F, 3.722748F, 3.984375F}};
inline constexpr std::array<std::array<float, 16>, 7> kTermsOfErf = {{
    {{0.0F, 0.2940791F, 0.5463115F, 0.74118865F, 0.86732394F, 0.9395811F, 0.97547644F, 0.99136233F, 0.9973036F,
      0.99928087F, 0.9998241F, 0.99996406F, 0.99999344F, 0.9999989F, 0.9999999F, 1.0F}},
    {{0.12837917F, 0.050839607F, -0.14779483F, -0.4035559F, -0.63566184F, -0.806435F, -0.90998936F, -0.9641117F,
      -0.98747927F, -0.99629766F, -0.9990077F, -0.9997788F, -0.9999563F, -0.9999923F, -0.9999989F, -1.0F}},
    {{1.1722644e-07F, -0.28038466F, -0.45151615F, -0.4762419F, -0.387375F, -0.2570063F, -0.14313136F, -0.06664159F,
      -0.026564004F, -0.008854324F, -0.002632124F, -0.00064625015F, -0.0001395124F, -2.6465374e-05F, -1.3440762e-05F,
      0.0F}},
    {{-0.37612954F, -0.30040136F, -0.12458786F, 0.05469148F, 0.15313046F, 0.16297169F, 0.12173153F, 0.070536345F,
      0.033398535F, 0.012883585F, 0.004323833F, 0.0011852456F, 0.00028149076F, 5.8482023e-05F, 1.4280476e-05F, 0.0F}},
    {{3.0862982e-06F, 0.13352472F, 0.18351184F, 0.13691936F, 0.047747366F, -0.022517366F, -0.04907119F, -0.043261643F,
      -0.026559956F, -0.01246135F, -0.004862425F, -0.0015212023F, -0.00037342313F, -9.822548e-05F, 0.001034905F, 0.0F}},
    {{0.113581546F, 0.07542496F, -0.0013098798F, -0.05962837F, -0.06589992F, -0.036911774F, -0.0054443106F,
      0.010848034F, 0.01248349F, 0.008033476F, 0.00387453F, 0.0014237266F, 0.00042671873F, 0.00010745485F,
      -0.0002966619F, 0.0F}},
    {{-0.00833621F, -0.04158801F, -0.048546486F, -0.0208496F, 0.009626647F, 0.022013223F, 0.015667617F, 0.0042979904F,
      -0.0022149668F, -0.0028484552F, -0.0019491388F, -0.00081267976F, -0.0012663724F, 0.00010262229F, -0.033679623F,
      0.0F}},
}};

}  // namespace tilewright::codegen::math
