// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelSteps.h"

#include "planner/import/AccessSet.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace mgpu::planner {

using namespace mlir;

namespace {

// The counter of thread ids along x.
constexpr uint32_t threadX = 0;
constexpr int64_t warp = 32;
// Blocks that a large GPU wants, of a kernel whose blocks are wide.
constexpr uint64_t manyBlocks = 256;
// The part of a thread's loads and sums that registers hold, so that it needs
// at most 128 of them.
constexpr int64_t mostHeld = 448, mostRegisters = 128;

class Chooser {
public:
  Chooser(Region &body, Dim3 grid, Dim3 block, AffineEvaluator &affine,
          const facts::Uniformity &uniformity)
      : body(body), grid(grid), block(block), affine(affine),
        uniformity(uniformity) {}

  LaunchWidth run() {
    const bool suits = !body.walk([&](Operation *op) {
                              return visit(op) ? WalkResult::advance()
                                               : WalkResult::interrupt();
                            })
                            .wasInterrupted();
    LaunchWidth form;
    if (!suits || wide.empty())
      return form;
    for (uint32_t vector = 2; fits(vector); vector *= 2)
      if (isAligned(vector))
        form.vector = vector;
    if (form.vector == 1)
      return form;
    if (meets && block.volume() == block.x && block.x == warp * form.vector)
      for (uint32_t rows : {2, 4})
        if (grid.volume() / rows >= manyBlocks)
          form.rows = rows;
    form.unroll = unrollOf(form.vector);
    if (meets)
      return form;
    form.blockX = blockFor(form.vector);
    // Compilers take more to have all addresses of several sums at hand.
    constexpr int64_t all = 65536; // registers of a multiprocessor
    const int64_t threads = int64_t(form.blockX) * block.y * block.z,
                  held = heldBytes(form.vector, std::max(form.unroll, 1u));
    if (2 * held > mostHeld && held <= mostHeld)
      form.minBlocks =
          uint32_t(std::max<int64_t>(all / mostRegisters / threads, 1));
    return form;
  }

private:
  struct Wide {
    int64_t bytes;  ///< of an element
    int64_t spread; ///< each place is a multiple of so many elements
  };
  bool visit(Operation *op);
  bool visitAccess(const MemoryAccess &access);
  bool sharesControl(Operation *op);
  bool fits(uint32_t vector) const;
  /// The values that a loop holds for a thread that is `vector` of the source:
  /// its sums, and the loads of so many trips.
  int64_t heldBytes(uint32_t vector, uint32_t trips) const;
  uint32_t unrollOf(uint32_t vector) const;
  uint32_t blockFor(uint32_t vector) const;
  bool isAligned(uint32_t vector) const {
    return llvm::all_of(wide, [&](const Wide &each) {
      const int64_t bytes = std::min(vector * each.bytes, widestAccess);
      return each.spread * each.bytes % bytes == 0;
    });
  }

  Region &body;
  Dim3 grid, block;
  AffineEvaluator &affine;
  const facts::Uniformity &uniformity;
  std::vector<Wide> wide;
  /// Bytes that a thread of the source loads in a trip of a loop, and of what
  /// goes from trip to trip; and what all its neighbours load in one.
  struct Trip {
    int64_t loaded = 0, sums = 0, shared = 0;
  };
  llvm::DenseMap<Operation *, Trip> trips;
  llvm::DenseSet<std::tuple<Operation *, Value, Value>> loads;
  int64_t smallest = 4, largest = 1; ///< elements, in bytes
  bool meets = false;                ///< threads of a block do
};

/// Whether all neighbours come where the operation is.
bool Chooser::sharesControl(Operation *op) {
  for (Operation *above = op->getParentOp(); above != body.getParentOp();
       above = above->getParentOp())
    if (!uniformity.hasUniformControl(above, facts::Among::Neighbours))
      return false;
  return true;
}

/// Whether the kernel may have a wide form for all that this operation does.
bool Chooser::visit(Operation *op) {
  if (auto access = memoryAccessOf(op))
    return visitAccess(*access);
  auto ofSubgroup = dyn_cast<gpu::SubgroupReduceOp>(op);
  if (isa<gpu::AllReduceOp, gpu::BarrierOp>(op) ||
      (ofSubgroup && !ofSubgroup.getClusterSize() &&
       ofSubgroup.getClusterStride() == 1)) {
    meets = true;
    return sharesControl(op);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value each : loop.getYieldedValues())
      if (each.getType().isIntOrFloat() && uniformity.variesAlongX(each))
        trips[loop].sums +=
            std::max<int64_t>(each.getType().getIntOrFloatBitWidth() / 8, 4);
    return !loop.getUnsignedCmp() &&
           uniformity.hasUniformControl(loop, facts::Among::Neighbours);
  }
  if (op->getNumRegions() > 0)
    return isa<scf::IfOp>(op);
  return !facts::isExchangeWithinBlocks(op) &&
         !isa<CallOpInterface, memref::AllocaOp, gpu::PrintfOp, gpu::LaneIdOp,
              gpu::SubgroupIdOp, gpu::DynamicSharedMemoryOp>(op) &&
         op->getName().getDialectNamespace() != "nvvm" &&
         op->getName().getDialectNamespace() != "nvgpu";
}

bool Chooser::visitAccess(const MemoryAccess &access) {
  auto type = cast<MemRefType>(access.memref.getType());
  const auto element = elementTypeOf(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!element || type.getElementType().isIndex() ||
      type.getElementType().isInteger(1) || !access.lanes.empty() ||
      access.isAtomic ||
      isa_and_present<gpu::AddressSpaceAttr>(type.getMemorySpace()) ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  const auto bytes = int64_t(sizeBytes(*element));
  smallest = std::min(smallest, bytes);
  Wide here{bytes, 0};
  bool isWide = false;
  for (auto [k, index] : llvm::enumerate(access.indices)) {
    const bool varies = uniformity.variesAlongX(index);
    const auto form = affine.evaluate(index);
    if (ShapedType::isDynamic(strides[k]) || (varies && !form))
      return false;
    if (!form) // somewhere, for all neighbours
      here.spread = std::gcd(here.spread, strides[k]);
    bool found = false;
    for (auto [counter, coefficient] : form ? form->terms : AffineForm().terms)
      if (counter == threadX) {
        found = coefficient == 1 && strides[k] == 1;
      } else {
        here.spread = std::gcd(here.spread, coefficient * strides[k]);
      }
    if (varies && !found)
      return false; // neighbours lie apart
    isWide |= found;
    if (form)
      here.spread = std::gcd(here.spread, form->constant * strides[k]);
  }
  if (isWide) {
    largest = std::max(largest, bytes);
    wide.push_back(here);
  }
  Operation *above = access.op->getParentOp();
  if (isWide && !access.stored && isa<scf::ForOp>(above) &&
      loads.insert({above, access.memref, access.indices.back()}).second)
    trips[above].loaded += bytes;
  else if (!isWide && !access.stored && isa<scf::ForOp>(above))
    trips[above].shared += std::max<int64_t>(bytes, 4);
  return true;
}

/// Threads of a block that is smaller where there would be few.
uint32_t Chooser::blockFor(uint32_t vector) const {
  constexpr uint32_t least = 64;
  uint32_t threads = block.x;
  if (block.volume() == block.x)
    while (threads % (2 * least) == 0 &&
           grid.volume() * block.x / vector / threads < manyBlocks)
      threads /= 2;
  return threads;
}

bool Chooser::fits(uint32_t vector) const {
  const uint64_t blocks =
      meets ? grid.volume()
            : grid.volume() * block.x / vector / blockFor(vector);
  return vector * smallest <= widestAccess &&
         vector * largest <= 2 * widestAccess && block.x % vector == 0 &&
         (!meets || block.volume() % (warp * vector) == 0) &&
         blocks >= manyBlocks;
}

int64_t Chooser::heldBytes(uint32_t vector, uint32_t unroll) const {
  int64_t most = 0;
  for (auto &[loop, trip] : trips)
    most = std::max(most, vector * trip.sums +
                              unroll * (vector * trip.loaded + trip.shared));
  return most;
}

/// The number whose loads registers hold; at least two, so that not each load
/// is awaited alone.
uint32_t Chooser::unrollOf(uint32_t vector) const {
  constexpr int64_t mostLoaded = 384; // of threads that meet
  int64_t loaded = 0;
  for (auto &[loop, trip] : trips)
    loaded = std::max(loaded, trip.loaded * vector);
  uint32_t unroll = loaded == 0 ? 0 : 8;
  if (meets)
    while (unroll > 1 && unroll * loaded > mostLoaded)
      unroll /= 2;
  else
    while (unroll > 2 && heldBytes(vector, unroll) > mostHeld)
      unroll /= 2;
  return unroll;
}

} // namespace

LaunchWidth launchFormOf(Region &body, Dim3 grid, Dim3 block,
                         AffineEvaluator &affine,
                         const facts::Uniformity &uniformity) {
  return Chooser(body, grid, block, affine, uniformity).run();
}

} // namespace mgpu::planner
