// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/DeviceKernels.h"

#include <fmt/format.h>

namespace mgpu::device {

namespace {

constexpr const char *license =
    "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n";

constexpr const char *moveText = R"cuda(
struct MgpuMove {
  unsigned long long destination, source, units;
  unsigned int unitBytes, rank;
  long long size[MGPU_MOVE_RANK], destinationStride[MGPU_MOVE_RANK],
      sourceStride[MGPU_MOVE_RANK];
};
template <int N>
struct MgpuMoves {
  MgpuMove moves[N];
};

// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#elif !defined MGPU_AWAIT_GRIDS
static __device__ __forceinline__ void mgpuAwaitGrids() {}
#endif

// Divisions of 32 bits are a fraction of the price of those of 64.
template <typename Unit, typename Index>
static __device__ __forceinline__ void mgpuCopyUnits(const MgpuMove &m) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i =
           (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
       i < m.units; i += step) {
    long long to = 0, from = 0;
    Index rest = (Index)i;
    for (int d = (int)m.rank - 1; d > 0; --d) {
      Index size = (Index)m.size[d];
      Index quotient = rest / size;
      long long digit = (long long)(rest - quotient * size);
      to += digit * m.destinationStride[d];
      from += digit * m.sourceStride[d];
      rest = quotient;
    }
    if (m.rank > 0) {
      to += (long long)rest * m.destinationStride[0];
      from += (long long)rest * m.sourceStride[0];
    }
    *(Unit *)(m.destination + (unsigned long long)to) =
        *(const Unit *)(m.source + (unsigned long long)from);
  }
}

template <typename Unit>
static __device__ __forceinline__ void mgpuCopy(const MgpuMove &m) {
  if (m.units >> 32)
    mgpuCopyUnits<Unit, unsigned long long>(m);
  else
    mgpuCopyUnits<Unit, unsigned int>(m);
}

static __device__ __forceinline__ void mgpuMove(const MgpuMove &m) {
  switch (m.unitBytes) {
  case 16:
    return mgpuCopy<uint4>(m);
  case 8:
    return mgpuCopy<unsigned long long>(m);
  case 4:
    return mgpuCopy<unsigned int>(m);
  case 2:
    return mgpuCopy<unsigned short>(m);
  default:
    return mgpuCopy<unsigned char>(m);
  }
}

extern "C" __global__ void __launch_bounds__(MGPU_THREADS)
mgpu_move_1(const __grid_constant__ MgpuMoves<1> p) {
  mgpuAwaitGrids();
  mgpuMove(p.moves[0]);
}

extern "C" __global__ void __launch_bounds__(MGPU_THREADS)
mgpu_move_16(const __grid_constant__ MgpuMoves<MGPU_MOVES> p) {
  mgpuAwaitGrids();
  mgpuMove(p.moves[blockIdx.y]);
}
)cuda";

// Converts narrow floats to and from float; rounding is to nearest, ties to
// even. The steps are those of device/host/SmallFloat.h, so that every bit is
// equal.
constexpr const char *smallFloatText = R"cuda(
#define MGPU_MAGNITUDE ((1u << (MGPU_E + MGPU_M)) - 1)
#define MGPU_INFINITY (((1u << MGPU_E) - 1) << MGPU_M)
#define MGPU_BIAS ((1 << (MGPU_E - 1)) - 1)

static __device__ __forceinline__ float mgpuToFloat(MgpuStored value) {
  unsigned int sign = (unsigned int)(value >> (MGPU_E + MGPU_M)) << 31;
  unsigned int magnitude = value & MGPU_MAGNITUDE;
  if (MGPU_SATURATES ? magnitude == MGPU_NAN : magnitude > MGPU_INFINITY)
    return __int_as_float((int)(sign | 0x7fc00000u));
  if (!MGPU_SATURATES && magnitude == MGPU_INFINITY)
    return __int_as_float((int)(sign | 0x7f800000u));
#if MGPU_E == 8
  return __int_as_float((int)(sign | magnitude << (23 - MGPU_M)));
#else
  // Aligned to float's fields the value is too small by a power of two; the
  // product is exact, also for subnormals.
  float scaled = __int_as_float((int)(magnitude << (23 - MGPU_M))) *
                 __int_as_float((127 + 127 - MGPU_BIAS) << 23);
  return __int_as_float((int)(sign | (unsigned int)__float_as_int(scaled)));
#endif
}

static __device__ __forceinline__ unsigned int mgpuRoundShift(unsigned int value,
                                                              int shift) {
  unsigned int half = (1u << (shift - 1)) - 1 + ((value >> shift) & 1);
  return (value + half) >> shift;
}

static __device__ __forceinline__ MgpuStored mgpuFromFloat(float value) {
  unsigned int raw = (unsigned int)__float_as_int(value);
  unsigned int sign = (raw >> 31) << (MGPU_E + MGPU_M);
  unsigned int magnitude = raw & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return (MgpuStored)(sign | MGPU_NAN);
  unsigned int rounded;
#if MGPU_E == 8
  rounded = mgpuRoundShift(magnitude, 23 - MGPU_M);
#else
  if (magnitude >= (unsigned int)(127 - MGPU_BIAS + 1) << 23) {
    rounded = mgpuRoundShift(
        magnitude - ((unsigned int)(127 - MGPU_BIAS) << 23), 23 - MGPU_M);
  } else {
    // The mantissa with its hidden bit, shifted to the subnormal's unit.
    int extra = 127 - MGPU_BIAS + 1 - (int)(magnitude >> 23);
    if (extra > MGPU_M + 2)
      return (MgpuStored)sign;
    rounded = mgpuRoundShift((magnitude & 0x7fffffu) | 0x800000u,
                             23 - MGPU_M + extra);
  }
#endif
  unsigned int limit = MGPU_SATURATES ? MGPU_NAN : MGPU_INFINITY;
  return (MgpuStored)(sign | (rounded < limit ? rounded : limit));
}

static __device__ __forceinline__ MgpuStored mgpuCombine(MgpuStored a,
                                                         MgpuStored b) {
  return mgpuFromFloat(mgpuCombineFloat(mgpuToFloat(a), mgpuToFloat(b)));
}
)cuda";

constexpr const char *reductionText = R"cuda(
struct MgpuReduction {
  unsigned long long inputs[MGPU_RANKS], outputs[MGPU_RANKS], count;
  unsigned int numInputs, numOutputs, slices, isPacked;
};

#define MGPU_PER_PACK (16 / sizeof(MgpuStored))
union MgpuPack {
  uint4 bits;
  MgpuStored values[MGPU_PER_PACK];
};

extern "C" __global__ void __launch_bounds__(MGPU_THREADS)
MGPU_ENTRY(const __grid_constant__ MgpuReduction r) {
  unsigned long long slice = r.slices > 1 ? blockIdx.y : 0;
  unsigned int firstOutput = (unsigned int)slice;
  unsigned int lastOutput = r.slices > 1 ? firstOutput + 1 : r.numOutputs;
  unsigned long long offset = slice * r.count * sizeof(MgpuStored);
  unsigned long long first =
      (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long packs = r.isPacked ? r.count / MGPU_PER_PACK : 0;
  // All inputs of a place are read before any output of it is written, by the
  // same thread: an output may be an input.
  for (unsigned long long i = first; i < packs; i += step) {
    MgpuPack sum, next;
    sum.bits = *(const uint4 *)(r.inputs[0] + offset + i * 16);
    for (unsigned int k = 1; k < r.numInputs; ++k) {
      next.bits = *(const uint4 *)(r.inputs[k] + offset + i * 16);
#pragma unroll
      for (int e = 0; e < (int)MGPU_PER_PACK; ++e)
        sum.values[e] = mgpuCombine(sum.values[e], next.values[e]);
    }
    for (unsigned int k = firstOutput; k < lastOutput; ++k)
      *(uint4 *)(r.outputs[k] + i * 16) = sum.bits;
  }
  for (unsigned long long i = packs * MGPU_PER_PACK + first; i < r.count;
       i += step) {
    unsigned long long at = offset + i * sizeof(MgpuStored);
    MgpuStored sum = *(const MgpuStored *)(r.inputs[0] + at);
    for (unsigned int k = 1; k < r.numInputs; ++k)
      sum = mgpuCombine(sum, *(const MgpuStored *)(r.inputs[k] + at));
    for (unsigned int k = firstOutput; k < lastOutput; ++k)
      *(MgpuStored *)(r.outputs[k] + i * sizeof(MgpuStored)) = sum;
  }
}
)cuda";

std::string combineFloat(ReductionKind kind, const char *type,
                         const char *signBit, const char *name) {
  std::string head =
      fmt::format("\nstatic __device__ __forceinline__ {0} {1}({0} a, {0} b) "
                  "{{\n",
                  type, name);
  switch (kind) {
  case ReductionKind::Sum:
    return head + "  return a + b;\n}\n";
  case ReductionKind::Prod:
    return head + "  return a * b;\n}\n";
  default:
    break;
  }
  bool isMin = kind == ReductionKind::Min;
  return head + fmt::format("  if (a != a)\n    return a;\n"
                            "  if (b != b)\n    return b;\n"
                            "  if (a == b) // the zeros differ only in sign\n"
                            "    return ({}) == {} ? a : b;\n"
                            "  return a {} b ? a : b;\n}}\n",
                            signBit, isMin, isMin ? '<' : '>');
}

std::string combineInteger(ReductionKind kind, const char *type,
                           const char *unsignedType) {
  // Unsigned: wraps without overflow.
  const char *expression = "";
  switch (kind) {
  case ReductionKind::Sum:
    expression = "(MgpuStored)((MgpuUnsigned)a + (MgpuUnsigned)b)";
    break;
  case ReductionKind::Prod:
    // 16 by 16 bits would be int, whose product may overflow.
    expression = "(MgpuStored)((MgpuUnsigned)a * (MgpuUnsigned)b)";
    break;
  case ReductionKind::Min:
    expression = "a < b ? a : b";
    break;
  case ReductionKind::Max:
    expression = "a > b ? a : b";
    break;
  }
  return fmt::format("\ntypedef {} MgpuStored;\ntypedef {} MgpuUnsigned;\n"
                     "static __device__ __forceinline__ MgpuStored "
                     "mgpuCombine(MgpuStored a,\n"
                     "                                       MgpuStored b) {{\n"
                     "  return {};\n}}\n",
                     type, unsignedType, expression);
}

std::string combineBool(ReductionKind kind) {
  bool isOr = kind == ReductionKind::Sum || kind == ReductionKind::Max;
  return fmt::format("\ntypedef unsigned char MgpuStored;\n"
                     "static __device__ __forceinline__ MgpuStored "
                     "mgpuCombine(MgpuStored a,\n"
                     "                                       MgpuStored b) {{\n"
                     "  return (MgpuStored)(a != 0 {} b != 0);\n}}\n",
                     isOr ? "||" : "&&");
}

std::string smallFloat(ReductionKind kind, const char *stored, int e, int m,
                       bool saturates) {
  uint32_t magnitude = (1u << (e + m)) - 1;
  uint32_t nan =
      saturates ? magnitude : (((1u << e) - 1) << m) | (1u << (m - 1));
  return fmt::format("\ntypedef {} MgpuStored;\n"
                     "#define MGPU_E {}\n#define MGPU_M {}\n"
                     "#define MGPU_SATURATES {}\n#define MGPU_NAN {:#x}u\n",
                     stored, e, m, int(saturates), nan) +
         combineFloat(kind, "float", "__float_as_int(a) < 0",
                      "mgpuCombineFloat") +
         smallFloatText;
}

std::string combine(ElementType type, ReductionKind kind) {
  switch (type) {
  case ElementType::I1:
    return combineBool(kind);
  case ElementType::I8:
    return combineInteger(kind, "signed char", "unsigned int");
  case ElementType::I16:
    return combineInteger(kind, "short", "unsigned int");
  case ElementType::I32:
    return combineInteger(kind, "int", "unsigned int");
  case ElementType::I64:
  case ElementType::Index:
    return combineInteger(kind, "long long", "unsigned long long");
  case ElementType::F8E4M3FN:
    return smallFloat(kind, "unsigned char", 4, 3, true);
  case ElementType::F8E5M2:
    return smallFloat(kind, "unsigned char", 5, 2, false);
  case ElementType::F16:
    return smallFloat(kind, "unsigned short", 5, 10, false);
  case ElementType::BF16:
    return smallFloat(kind, "unsigned short", 8, 7, false);
  case ElementType::F32:
    return "\ntypedef float MgpuStored;\n" +
           combineFloat(kind, "float", "__float_as_int(a) < 0", "mgpuCombine");
  case ElementType::F64:
    break;
  }
  return "\ntypedef double MgpuStored;\n" +
         combineFloat(kind, "double", "__double_as_longlong(a) < 0",
                      "mgpuCombine");
}

} // namespace

std::string moveKernelSource() {
  return license +
         fmt::format("#define MGPU_THREADS {}\n#define MGPU_MOVE_RANK {}\n"
                     "#define MGPU_MOVES {}\n",
                     deviceKernelThreads, maxMoveRank, maxMovesPerKernel) +
         moveText;
}

std::string reductionKernelName(ElementType type, ReductionKind kind) {
  if (type == ElementType::Index)
    type = ElementType::I64;
  return fmt::format("mgpu_reduce_{}_{}", toString(kind), toString(type));
}

std::string reductionKernelSource(ElementType type, ReductionKind kind) {
  return license +
         fmt::format("#define MGPU_THREADS {}\n#define MGPU_RANKS {}\n"
                     "#define MGPU_ENTRY {}\n",
                     deviceKernelThreads, maxReductionRanks,
                     reductionKernelName(type, kind)) +
         combine(type, kind) + reductionText;
}

} // namespace mgpu::device
