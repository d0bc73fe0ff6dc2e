/* Written in assembler, so that what runs is exactly what is counted: twelve accumulators or more hide the latency of
 * every processor there is, none of them leaves its register, and the values stay finite and normal. */
#include "runtime/roof_loops.h"

#include <string.h>

#include "support/host_cpu.h"

#if defined(__x86_64__)

#define EACH12(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define EACH16(f) EACH12(f) f(12) f(13) f(14) f(15)
#define EACH24(f) EACH12(f) f(12) f(13) f(14) f(15) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23)

#define LOW_REGISTERS                                                                                                 \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"
#define HIGH_REGISTERS "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25"

static const float kOneF = 1.0f, kTinyF = 1e-30f;
static const double kOneD = 1.0, kTinyD = 1e-30;
static const int32_t kThree = 3;

/* A loop: set up two operands and clear the accumulators, then execute `body` `count` times. */
#define COMPUTE_LOOP(name, features, load, one, tiny, first, second, clear, body, finish, ...)            \
  __attribute__((target(features), noinline)) static void name(int64_t count) {                           \
    __asm__ volatile(load " %1, " first "\n\t" load " %2, " second "\n\t" clear ".p2align 5\n1:\n\t" body \
                          "dec %0\n\tjnz 1b\n\t" finish                                                   \
                     : "+r"(count)                                                                        \
                     : "m"(one), "m"(tiny)                                                                \
                     : "cc", LOW_REGISTERS __VA_ARGS__);                                                  \
  }
#define WITH_HIGH , HIGH_REGISTERS

/* SSE2 has no fused operation: six multiplications and six additions. */
#define CLEAR_X(i) "pxor %%xmm" #i ", %%xmm" #i "\n\t"
#define MULPS(i) "mulps %%xmm12, %%xmm" #i "\n\t"
#define ADDPS(i) "addps %%xmm13, %%xmm" #i "\n\t"
#define MULPD(i) "mulpd %%xmm12, %%xmm" #i "\n\t"
#define ADDPD(i) "addpd %%xmm13, %%xmm" #i "\n\t"
#define ALTERNATE(f, g) f(0) g(1) f(2) g(3) f(4) g(5) f(6) g(7) f(8) g(9) f(10) g(11)
#define SPREAD "shufps $0, %%xmm12, %%xmm12\n\tshufps $0, %%xmm13, %%xmm13\n\t"
#define SPREAD_D "unpcklpd %%xmm12, %%xmm12\n\tunpcklpd %%xmm13, %%xmm13\n\t"
COMPUTE_LOOP(f32_sse2, "sse2", "movss", kOneF, kTinyF, "%%xmm12", "%%xmm13", SPREAD EACH12(CLEAR_X),
             ALTERNATE(MULPS, ADDPS), "")
COMPUTE_LOOP(f64_sse2, "sse2", "movsd", kOneD, kTinyD, "%%xmm12", "%%xmm13", SPREAD_D EACH12(CLEAR_X),
             ALTERNATE(MULPD, ADDPD), "")
#define PADDD_X(i) "paddd %%xmm12, %%xmm" #i "\n\t"
#define PMULLD_X(i) "pmulld %%xmm12, %%xmm" #i "\n\t"
COMPUTE_LOOP(add_sse2, "sse2", "movd", kThree, kThree, "%%xmm12", "%%xmm13", EACH12(CLEAR_X), EACH12(PADDD_X), "")
COMPUTE_LOOP(mul_sse41, "sse4.1", "movd", kThree, kThree, "%%xmm12", "%%xmm13", EACH12(CLEAR_X), EACH12(PMULLD_X), "")

#define CLEAR_Y(i) "vpxor %%ymm" #i ", %%ymm" #i ", %%ymm" #i "\n\t"
#define FMAPS_Y(i) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define FMAPD_Y(i) "vfmadd231pd %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define PADDD_Y(i) "vpaddd %%ymm12, %%ymm" #i ", %%ymm" #i "\n\t"
#define PMULLD_Y(i) "vpmulld %%ymm12, %%ymm" #i ", %%ymm" #i "\n\t"
#define DOT_Y(i) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define UPPER "vzeroupper\n\t"
COMPUTE_LOOP(f32_avx2, "avx2,fma", "vbroadcastss", kOneF, kTinyF, "%%ymm12", "%%ymm13", EACH12(CLEAR_Y),
             EACH12(FMAPS_Y), UPPER)
COMPUTE_LOOP(f64_avx2, "avx2,fma", "vbroadcastsd", kOneD, kTinyD, "%%ymm12", "%%ymm13", EACH12(CLEAR_Y),
             EACH12(FMAPD_Y), UPPER)
COMPUTE_LOOP(add_avx2, "avx2", "vpbroadcastd", kThree, kThree, "%%ymm12", "%%ymm13", EACH12(CLEAR_Y), EACH12(PADDD_Y),
             UPPER)
COMPUTE_LOOP(mul_avx2, "avx2", "vpbroadcastd", kThree, kThree, "%%ymm12", "%%ymm13", EACH12(CLEAR_Y), EACH12(PMULLD_Y),
             UPPER)
COMPUTE_LOOP(dot_avxvnni, "avx2", "vpbroadcastd", kThree, kThree, "%%ymm12", "%%ymm13", EACH12(CLEAR_Y), EACH12(DOT_Y),
             UPPER)

#define CLEAR_Z(i) "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n\t"
#define FMAPS_Z(i) "vfmadd231ps %%zmm24, %%zmm25, %%zmm" #i "\n\t"
#define FMAPD_Z(i) "vfmadd231pd %%zmm24, %%zmm25, %%zmm" #i "\n\t"
#define PADDD_Z(i) "vpaddd %%zmm24, %%zmm" #i ", %%zmm" #i "\n\t"
#define PMULLD_Z(i) "vpmulld %%zmm24, %%zmm" #i ", %%zmm" #i "\n\t"
#define DOT_Z(i) "vpdpbusd %%zmm24, %%zmm25, %%zmm" #i "\n\t"
COMPUTE_LOOP(f32_avx512, "avx512f", "vbroadcastss", kOneF, kTinyF, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(FMAPS_Z), UPPER, WITH_HIGH)
COMPUTE_LOOP(f64_avx512, "avx512f", "vbroadcastsd", kOneD, kTinyD, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(FMAPD_Z), UPPER, WITH_HIGH)
COMPUTE_LOOP(add_avx512, "avx512f", "vpbroadcastd", kThree, kThree, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(PADDD_Z), UPPER, WITH_HIGH)
COMPUTE_LOOP(mul_avx512, "avx512f", "vpbroadcastd", kThree, kThree, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(PMULLD_Z), UPPER, WITH_HIGH)
#define BF16_DOT_Z(i) "vdpbf16ps %%zmm24, %%zmm25, %%zmm" #i "\n\t"
COMPUTE_LOOP(dot_avx512bf16, "avx512f", "vbroadcastss", kOneF, kTinyF, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(BF16_DOT_Z), UPPER, WITH_HIGH)
COMPUTE_LOOP(dot_avx512vnni, "avx512f", "vpbroadcastd", kThree, kThree, "%%zmm24", "%%zmm25", EACH24(CLEAR_Z),
             EACH24(DOT_Z), UPPER, WITH_HIGH)

/* Tiles of 16 rows of 64 bytes: the palette, then the bytes of a row and the rows of each of eight tiles. */
static const struct {
  uint8_t palette, reserved[15];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} kTiles = {1, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* Four sums of products hide the latency. Operands are a tile of ones: zeros would take less power, and run at a clock
 * that real data do not reach. */
#define TILE_LOOP(name, instruction, one)                                                                            \
  __attribute__((noinline)) static void name(int64_t count) {                                                        \
    int32_t ones[256];                                                                                               \
    for (int i = 0; i < 256; ++i) ones[i] = one;                                                                     \
    __asm__ volatile(                                                                                                \
        "ldtilecfg %1\n\ttileloadd (%2, %3), %%tmm4\n\ttileloadd (%2, %3), %%tmm5\n\t"                               \
        "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3\n\t.p2align 5\n1:\n\t" instruction \
        " %%tmm5, %%tmm4, %%tmm0\n\t" instruction " %%tmm5, %%tmm4, %%tmm1\n\t" instruction                          \
        " %%tmm5, %%tmm4, %%tmm2\n\t" instruction                                                                    \
        " %%tmm5, %%tmm4, %%tmm3\n\t"                                                                                \
        "dec %0\n\tjnz 1b\n\ttilerelease"                                                                            \
        : "+r"(count)                                                                                                \
        : "m"(kTiles), "r"(ones), "r"((int64_t)64)                                                                   \
        : "cc", "memory");                                                                                           \
  }
TILE_LOOP(dot_amx_int8, "tdpbssd", 0x01010101)
TILE_LOOP(dot_amx_bf16, "tdpbf16ps", 0x3c003c00)

#define READ_LOOP(name, features, body, finish)                                                   \
  __attribute__((target(features), noinline)) static void name(const void* from, int64_t count) { \
    __asm__ volatile(".p2align 5\n1:\n\t" body "add $1024, %0\n\tdec %1\n\tjnz 1b\n\t" finish     \
                     : "+r"(from), "+r"(count)                                                    \
                     :                                                                            \
                     : "cc", "memory", LOW_REGISTERS);                                            \
  }
#define LOAD_X(part, i) "movaps " #part "*256+" #i "*16(%0), %%xmm" #i "\n\t"
#define LOAD_Y(part, i) "vmovaps " #part "*512+" #i "*32(%0), %%ymm" #i "\n\t"
#define LOAD_Z(i) "vmovaps " #i "*64(%0), %%zmm" #i "\n\t"
#define LOAD_X0(i) LOAD_X(0, i)
#define LOAD_X1(i) LOAD_X(1, i)
#define LOAD_X2(i) LOAD_X(2, i)
#define LOAD_X3(i) LOAD_X(3, i)
#define LOAD_Y0(i) LOAD_Y(0, i)
#define LOAD_Y1(i) LOAD_Y(1, i)
READ_LOOP(read_sse2, "sse2", EACH16(LOAD_X0) EACH16(LOAD_X1) EACH16(LOAD_X2) EACH16(LOAD_X3), "")
READ_LOOP(read_avx, "avx", EACH16(LOAD_Y0) EACH16(LOAD_Y1), UPPER)
READ_LOOP(read_avx512, "avx512f", EACH16(LOAD_Z), UPPER)

static tw_compute_probe probe(tw_compute_loop loop, double operations) {
  tw_compute_probe p = {loop, operations};
  return p;
}

void tw_find_roof_loops(tw_roof_loops* loops) {
  const tw_cpu_features* host = tw_host_cpu_features();
  int avx2 = tw_has_cpu_feature(host, TW_CPU_avx2) && tw_has_cpu_feature(host, TW_CPU_fma);
  int avx512 = avx2 && tw_has_cpu_feature(host, TW_CPU_avx512f);
  memset(loops, 0, sizeof(*loops));
  /* Instructions, times lanes, times operations of a lane. */
  loops->f32[TW_LEVEL_BASELINE] = probe(f32_sse2, 12 * 4);
  loops->f64[TW_LEVEL_BASELINE] = probe(f64_sse2, 12 * 2);
  loops->i32_add = probe(add_sse2, 12 * 4);
  if (tw_has_cpu_feature(host, TW_CPU_sse4_1)) loops->i32_mul = probe(mul_sse41, 12 * 4);
  loops->read = tw_has_cpu_feature(host, TW_CPU_avx) ? read_avx : read_sse2;
  if (avx2) {
    loops->best_level = TW_LEVEL_AVX2;
    loops->f32[TW_LEVEL_AVX2] = probe(f32_avx2, 12 * 8 * 2);
    loops->f64[TW_LEVEL_AVX2] = probe(f64_avx2, 12 * 4 * 2);
    loops->i32_add = probe(add_avx2, 12 * 8);
    loops->i32_mul = probe(mul_avx2, 12 * 8);
    if (tw_has_cpu_feature(host, TW_CPU_avxvnni)) loops->i8_dot = probe(dot_avxvnni, 12 * 8 * 8);
  }
  if (avx512) {
    loops->best_level = TW_LEVEL_AVX512;
    loops->f32[TW_LEVEL_AVX512] = probe(f32_avx512, 24 * 16 * 2);
    loops->f64[TW_LEVEL_AVX512] = probe(f64_avx512, 24 * 8 * 2);
    loops->i32_add = probe(add_avx512, 24 * 16);
    loops->i32_mul = probe(mul_avx512, 24 * 16);
    if (tw_has_cpu_feature(host, TW_CPU_avx512vnni)) loops->i8_dot = probe(dot_avx512vnni, 24 * 16 * 8);
    if (tw_has_cpu_feature(host, TW_CPU_avx512bf16)) loops->bf16_dot = probe(dot_avx512bf16, 24 * 16 * 4);
    loops->read = read_avx512;
  }
  int int8 = tw_has_cpu_feature(host, TW_CPU_amx_int8), bf16 = tw_has_cpu_feature(host, TW_CPU_amx_bf16);
  if ((int8 || bf16) && tw_request_amx()) {
    if (int8) loops->i8_dot = probe(dot_amx_int8, 4 * 256 * 64 * 2);
    if (bf16) loops->bf16_dot = probe(dot_amx_bf16, 4 * 256 * 32 * 2);
  }
}

#else

void tw_find_roof_loops(tw_roof_loops* loops) { memset(loops, 0, sizeof(*loops)); }

#endif
