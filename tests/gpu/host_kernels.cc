// The kernels as plain functions: grid, block, then the kernel's own arguments.
#include "host_shim.h"
#include KERNELS
#define WRAP(name, params, ...) \
  void host_##name params { launch(grid, block, [&] { name(__VA_ARGS__); }); }
extern "C" {
WRAP(add_rmsnorm, (int grid, int block, half_t* x, half_t* d, half_t* w, half_t* y, int n), x, d, w, y, n)
WRAP(silu_mul, (int grid, int block, half_t* gu, half_t* o, long long t, int f), gu, o, t, f)
WRAP(rope_split, (int grid, int block, half_t* qkv, half_t* q, half_t* k, half_t* v, long long* qb, int* qs,
                  long long* kb, int* kc, int* pos, int hq, int hkv), qkv, q, k, v, qb, qs, kb, kc, pos, hq, hkv)
WRAP(causal_softmax, (int grid, int block, half_t* s, int ld, int keys, int c, int hist, float sc),
     s, ld, keys, c, hist, sc)
WRAP(decode_attn, (int grid, int block, half_t* q, half_t* k, half_t* v, long long* kb, int* cap, int4* w,
                   float* part, int hkv, float sc), q, k, v, kb, cap, w, part, hkv, sc)
WRAP(decode_join, (int grid, int block, float* part, int2* r, half_t* out, int* row, int hkv), part, r, out, row, hkv)
WRAP(merge_heads, (int grid, int block, half_t* o, half_t* out, long long r0, int c, int hq), o, out, r0, c, hq)
}
