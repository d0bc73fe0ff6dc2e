// erf.
#pragma once

#include "codegen/llvm/math/exponential.h"

namespace tilewright::codegen::math {

/// Near 0 an odd polynomial, from 1 on 1 - e^P(x), P being close to log(1 - erf(x)): at 1 that is 0.16, so that errors
/// of the exponential count a fifth.
template <Grade grade, class D>
D erf(const D& x) {
  D magnitude = abs(x), z = x * x;
  constexpr bool single = grade == Grade::kSingle;
  D t = clamp(magnitude, 0.0, single ? 4.0 : 6.0);
  // |x| <= 1: errors 2^-34.8, 2^-62.7. Up to 4 (float32 is 1 there) and 6: 2^-35.4, 2^-57.0, relative to erf.
  D near =
      single
          ? polynomial(z, {-9.637339934194786e-06, 0.00011255592568531529, -0.0008482657539708947, 0.005220934819366918,
                           -0.02686539672034876, 0.11283781925771456, -0.37612638432116413, 0.1283791670578214})
          : polynomial(z, {5.942534656419708e-11, -1.1364096579685798e-09, 1.4657485677052371e-08,
                           -1.6349968511560157e-07, 1.6460967659554386e-06, -1.4925593198285884e-05,
                           0.00012055331024638187, -0.0008548326978423318, 0.0052239776247756465, -0.026866170645072397,
                           0.11283791670954856, -0.3761263890318375, 0.1283791670955126});
  D logarithm =
      single
          ? polynomial(t, {-2.1697504822106852e-05, 0.0004414712529780522, -0.004205277243334619, 0.025210317820545506,
                           -0.10842206197506699, -0.6332164346850209, -1.1295802907858126, 0.00018846307607254983})
          : polynomial(t,
                       {-4.946622502869882e-12, 2.0519768938260203e-10, -3.9469389332684326e-09, 4.6564084192880387e-08,
                        -3.743876877942119e-07, 2.1417789599368498e-06, -8.693179715884743e-06, 2.290839907118522e-05,
                        -2.0489015012450118e-05, -0.00013459649009953586, 0.0007699126176560092, -0.0019150211874404829,
                        0.00040972628966339474, 0.018990847495650418, -0.10270380281361638, -0.636643491784491,
                        -1.1283741210124876, -4.994610944756099e-07});
  D far = x.constant(1.0) - exp_moderate<grade>(logarithm);
  return select(magnitude < 1.0, mad(x, near, x), copysign(far, x));
}

}  // namespace tilewright::codegen::math
