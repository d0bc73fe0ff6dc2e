// tanh as a piecewise polynomial of sixteen segments, for processors with table lookups in registers.
//
// Segments end where the bits of a float32 equal those of kFirstOfTanh plus multiples of 2^22, two in each octave, up
// to 9.14; the first begins at 0. tanh(center + t) = terms[0] + t (terms[1] + terms[2] t + ... + terms[6] t^5). Each
// center is near the middle of its segment, where tanh is nearly a number of float32. Each term is the first
// coefficient of a least-squares fit of the remaining terms, rounded; errors are weighted by units in the last place of
// tanh. With fused operations the error is up to 0.98 units in the last place.
#pragma once

#include <array>

namespace tilewright::codegen::math {

inline constexpr double kFirstOfTanh = 0x1.2474540000000p-5, kLastOfTanh = 9.1;
inline constexpr std::array<float, 16> kCentersOfTanh = {
    {0.0F, 0.061398122F, 0.08704548F, 0.12282314F, 0.17410396F, 0.2453535F, 0.34791544F, 0.49048F, 0.6954574F,
     0.9819075F, 1.3906091F, 1.9657031F, 2.7815175F, 3.9246485F, 5.5702004F, 7.8596206F}};
inline constexpr std::array<std::array<float, 16>, 7> kTermsOfTanh = {{
    {{0.0F, 0.061321087F, 0.0868263F, 0.12220923F, 0.17236587F, 0.24054594F, 0.33452556F, 0.45459732F, 0.6014765F,
      0.75389045F, 0.88330483F, 0.96152264F, 0.9923551F, 0.99922025F, 0.999971F, 0.9999997F}},
    {{1.0F, 0.9962397F, 0.9924612F, 0.9850649F, 0.97029F, 0.94213766F, 0.88809264F, 0.7933413F, 0.63822603F,
      0.43164918F, 0.21977244F, 0.07547411F, 0.0152315125F, 0.0015590377F, 5.814362e-05F, 6.002456e-07F}},
    {{-4.6936255e-10F, -0.06109078F, -0.08617173F, -0.12038288F, -0.16724488F, -0.22662714F, -0.2970897F, -0.3606508F,
      -0.38387796F, -0.32541624F, -0.1941262F, -0.07257003F, -0.01511487F, -0.0015577177F, -5.8090965e-05F,
      -5.986592e-07F}},
    {{-0.3333332F, -0.3282543F, -0.32348612F, -0.3137973F, -0.29460183F, -0.2595504F, -0.19663396F, -0.10050004F,
      0.018148074F, 0.101444334F, 0.09823104F, 0.044627465F, 0.009916664F, 0.0010339342F, 3.799136e-05F,
      3.770289e-07F}},
    {{-1.24346e-05F, 0.048905525F, 0.056711864F, 0.06992919F, 0.10651666F, 0.13750958F, 0.16481723F, 0.16589324F,
      0.11704363F, 0.032000806F, -0.022043955F, -0.01871998F, -0.0048084264F, -0.00051606697F, -1.9119992e-05F,
      -1.9020042e-07F}},
    {{0.1338113F, -0.43708012F, 0.5570371F, 0.3925337F, 0.10072999F, 0.08255546F, 0.027838817F, -0.023650344F,
      -0.061652966F, -0.04821785F, -0.008892241F, 0.004650939F, 0.001847311F, 0.00021935039F, 9.120467e-06F,
      1.03634626e-07F}},
    {{-0.008319192F, -58.08861F, 0.30397573F, 14.616533F, -0.04896514F, 0.12779932F, -0.07188783F, -0.05105786F,
      -0.010303077F, 0.018136265F, 0.010456446F, 0.00012004457F, -0.0005216487F, -7.092474e-05F, -2.9571906e-06F,
      -3.411578e-08F}},
}};

}  // namespace tilewright::codegen::math
