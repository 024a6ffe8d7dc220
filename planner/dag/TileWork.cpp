// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/KernelWork.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mgpu::planner {

static constexpr double warp = 32, lineBytes = 128, registerBytes = 4;
// Registers of a thread beside what it computes and awaits.
static constexpr double besides = 24;

// The resources of a large GPU of sm_80 and later.
static constexpr double multiprocessors = 128, mostThreads = 2048,
                        mostBlocks = 32, registers = 65536,
                        mostShared = 227 * 1024;

double residentThreads(double threads, double registerBytesOfThread,
                       uint64_t sharedBytes) {
  // A thread that holds nothing has so many registers.
  constexpr double least = 32;
  const double each =
      std::max(least, besides + registerBytesOfThread / registerBytes);
  double blocks =
      std::min({mostBlocks, mostThreads / threads, registers / each / threads});
  if (sharedBytes > 0)
    blocks = std::min(blocks, mostShared / double(sharedBytes));
  return multiprocessors * threads * std::max(blocks, 1.0);
}

double idleSchedulers(double threads, double blocks, double resident) {
  constexpr double schedulers = 4;
  const double warps = std::min(threads * blocks, resident) / warp /
                       std::min(blocks, multiprocessors);
  return std::max(schedulers / warps, 1.0);
}

uint32_t flightOfSource(int64_t flightBytes, double resident,
                        double sourceThreads) {
  constexpr int64_t most = 128;
  const double whole = std::min(sourceThreads, multiprocessors * mostThreads);
  return uint32_t(
      std::max(double(std::min(flightBytes, most)) * resident / whole, 1.0));
}

TileForm tilesByDefault(const Product &product) {
  TileForm form;
  // Elements of a thread along an axis, where a block has 16 threads along it.
  auto tileOf = [](double extent, uint32_t threads) {
    const auto each = uint32_t(std::ceil(std::min(extent, 1e6) / threads));
    return std::clamp(std::bit_ceil(each), 1u, 4u);
  };
  form.tileX = tileOf(product.n, form.blockX);
  form.tileY = tileOf(product.m, form.blockY);
  form.rows = form.blockY * form.tileY;
  form.columns = form.blockX * form.tileX;
  form.sharedBytes = uint64_t(product.factorBytes()) * form.depth *
                     form.stages * (form.rows + form.columns);
  return form;
}

namespace {

/// A step of k of a block, all of its threads and warps together.
struct Step {
  double instructions = 0; ///< of threads
  double shared = 0;       ///< lines of shared memory
};

/// Elements that lie together are loaded by 16 bytes; lanes beside each other
/// that have one row or column share what they load.
Step stepOfThreads(const Product &product, const TileForm &form) {
  const double most = 16.0 / product.factorBytes(),
               threads = form.blockX * form.blockY;
  const double packA = std::min<double>(form.tileY, most),
               packB = std::min<double>(form.tileX, most);
  const double across = std::min<double>(form.blockX, warp),
               down = std::max(warp / form.blockX, 1.0);
  auto linesOf = [&](double lanes, double pack) {
    return std::ceil(lanes * pack * product.factorBytes() / lineBytes);
  };
  const double loadsA = form.tileY / packA, loadsB = form.tileX / packB;
  // A multiprocessor has half as many lanes for f64.
  const double each = product.factorBytes() / 4.0;
  return {
      threads * (each * form.tileX * form.tileY + loadsA + loadsB),
      threads / warp *
          (loadsA * linesOf(down, packA) + loadsB * linesOf(across, packB))};
}

/// ldmatrix brings four tiles of 8 rows by 16 bytes, an mma multiplies 16 x 16
/// by 16 x 8.
Step stepOfMma(const TileForm &form) {
  constexpr double steps = 16, linesOfLoad = 4;
  const double warps = form.blockY, warpsX = warps / form.warpsY;
  const double high = double(form.rows) / form.warpsY / 16,
               wide = form.columns / warpsX / 16;
  const double loads = high + wide, products = high * 2 * wide;
  return {warps * warp * (loads + products) / steps,
          warps * loads * linesOfLoad / steps};
}

/// Each wgmma reads 64 rows of A and all columns of B.
Step stepOfWgmma(const Product &product, const TileForm &form) {
  constexpr double steps = 16, high = 64, around = 8;
  const double products = form.rows / high;
  return {4 * warp * products * around / steps,
          products * (high + form.columns) * product.factorBytes() / lineBytes};
}

Step stepOf(const Product &product, const TileForm &form) {
  switch (form.kind) {
  case TileForm::Kind::Threads:
    return stepOfThreads(product, form);
  case TileForm::Kind::Mma:
    return stepOfMma(form);
  case TileForm::Kind::Wgmma:
    return stepOfWgmma(product, form);
  }
  return {};
}

} // namespace

/// Registers that a thread lacks.
static double spilled(double heldBytes, double threads) {
  constexpr double most = 255;
  return std::max(besides + heldBytes / registerBytes -
                      std::min(most, registers / threads),
                  0.0);
}

LaunchWork workOfTiles(const Product &product, const TileForm &form,
                       double sourceThreads) {
  const double threads = double(form.blockX) * form.blockY;
  const double down = std::ceil(product.m / form.rows),
               across = std::ceil(product.n / form.columns),
               tiles = down * across * product.batch;
  // A and B come by stages, whole tiles of them.
  const double stages = std::ceil(product.k / form.depth),
               perStep = form.rows + form.columns,
               ofStage = perStep * form.depth;
  const bool isByThreads = form.kind == TileForm::Kind::Threads;
  // Elements of a copy; for each an address, a guard, a load and a store, of
  // tensor copies nothing.
  const double wide = isByThreads ? 1 : 16.0 / product.factorBytes(),
               ofCopy = form.kind == TileForm::Kind::Wgmma ? 0 : 7;
  constexpr double ofLoop = 12; // a barrier, stages in turn
  const Step step = stepOf(product, form);
  // Times that all of a thread's sums are come by.
  const double steps = product.k / (isByThreads ? 1 : 16);
  // Rows of A, and of a B that is turned, are as long as a stage.
  const double acrossB = product.isTurned ? form.depth : double(form.columns);
  auto linesOf = [&](double elements, double row) {
    const double bytes = row * product.factorBytes();
    return elements * product.factorBytes() / std::min(bytes, lineBytes);
  };
  // Others pass registers and the first cache by.
  const double global =
      !isByThreads ? 0
                   : linesOf(double(form.rows) * form.depth, form.depth) +
                         linesOf(double(form.columns) * form.depth, acrossB);
  const double ofC = double(form.rows) * form.columns,
               timesC = product.overwrites ? 1 : 2;
  LaunchWork work;
  work.instructions =
      tiles * (stages * (step.instructions * form.depth +
                         ofCopy * ofStage / wide + ofLoop * threads) +
               3 * timesC * ofC / (isByThreads ? 1 : 2));
  work.lines = tiles * (stages * (step.shared * form.depth + global +
                                  ofStage * product.factorBytes() / lineBytes) +
                        timesC * linesOf(ofC, form.columns));
  work.movedBytes = tiles * (stages * ofStage * product.factorBytes() +
                             timesC * ofC * product.sumBytes());
  // Products of f32 have the next stage in registers, others have all but one
  // on their way.
  const double ahead = isByThreads ? 1 : form.stages - 1,
               flight = ahead * ofStage * product.factorBytes() / threads;
  work.blocks = std::ceil(down / form.tiles) * across * product.batch;
  const double ofSums = isByThreads ? product.sumBytes() : registerBytes,
               held = ofC * ofSums / threads + (isByThreads ? flight : 0);
  const double resident = std::min(
      work.blocks * threads, residentThreads(threads, held, form.sharedBytes));
  // A value that finds no place in registers is stored and loaded each time.
  const double lost = spilled(held, threads) * threads * steps;
  work.instructions += tiles * 2 * lost;
  work.lines += tiles * 2 * lost / warp;
  work.instructions *= idleSchedulers(threads, work.blocks, resident);
  work.flightBytes = flightOfSource(int64_t(flight), resident, sourceThreads);
  return work;
}

namespace {

constexpr double lanesOfWarp = 32, bytesOfLine = 128, bytesOfRegister = 4;

/// A warp and a tile of keys.
struct KeyTile {
  double instructions = 0; ///< of the warp
  double lines = 0;        ///< of shared memory
};

// Instructions of a lane for each of its scores: a guard, the scale, the
// largest, a power and its sum; and for each of its sums, which are corrected.
constexpr double ofScore = 14, ofSum = 2;

/// An mma multiplies 16 x 16 by 16 x 8; ldmatrix brings two of its factors by
/// four lines.
KeyTile tileOnTensorCores(const AttentionSizes &sizes, double keys) {
  const double products =
                   keys / 8 * sizes.head / 16 + sizes.value / 8 * keys / 16,
               loads = products / 2;
  return {products + loads + ofScore * 16 * keys / lanesOfWarp +
              ofSum * 16 * sizes.value / lanesOfWarp,
          4 * loads};
}

/// Lanes have a key, and then an element of a value, for each of `rows`
/// queries, whose elements and powers they share.
KeyTile tileByThreads(const AttentionSizes &sizes, double rows) {
  // Four steps are loaded at once: one access for a query, four lines of keys.
  const double columns = std::ceil(sizes.value / lanesOfWarp),
               steps = sizes.head + columns * lanesOfWarp;
  return {steps * (rows + (rows + 4) / 4) + ofScore * rows +
              ofSum * rows * columns,
          steps * (rows + 4) / 4};
}

} // namespace

double AttentionSizes::rowsOfWarp() const {
  // More queries share what a lane loads, and leave fewer registers.
  if (onTensorCores || (queries >= 64 && value <= 128))
    return 16;
  return queries > 4 ? 8 : 2;
}

double AttentionSizes::keysOfTile() const {
  return onTensorCores && head + value <= 128 ? 64 : 32;
}

LaunchWork workOfAttention(const AttentionSizes &sizes, double sourceThreads) {
  const bool isNarrow = sizes.onTensorCores;
  const double rows = sizes.rowsOfWarp(), keys = sizes.keysOfTile();
  const double warps = std::clamp(
      std::exp2(std::ceil(std::log2(sizes.queries / rows))), 1.0, 4.0);
  const KeyTile tile =
      isNarrow ? tileOnTensorCores(sizes, keys) : tileByThreads(sizes, rows);
  const double tiles = std::ceil(sizes.keys / keys),
               threads = lanesOfWarp * warps;
  const double ofTile = keys * (sizes.head + sizes.value), // elements
      ofCopy = isNarrow ? 5.0 / 8 : 7, // instructions for each
      ofQueries = isNarrow ? 0 : rows * warps * sizes.head; // each time again
  LaunchWork work;
  work.blocks = std::ceil(sizes.queries / (rows * warps)) * sizes.batch;
  work.instructions =
      work.blocks * tiles *
      (tile.instructions * threads + ofCopy * (ofTile + ofQueries));
  work.lines = work.blocks * tiles *
               (tile.lines * warps + ofTile * sizes.bytes / bytesOfLine);
  work.movedBytes =
      work.blocks * sizes.bytes *
      (tiles * ofTile + rows * warps * (sizes.head + sizes.value));
  const double flight = ofTile * sizes.bytes / threads,
               held = bytesOfRegister * rows *
                      (sizes.value + (isNarrow ? sizes.head / 2 + keys : 0)) /
                      lanesOfWarp;
  const double resident = std::min(
      work.blocks * threads,
      residentThreads(threads, held, uint64_t(2 * ofTile * sizes.bytes)));
  work.instructions *= idleSchedulers(threads, work.blocks, resident);
  work.flightBytes = flightOfSource(int64_t(flight), resident, sourceThreads);
  return work;
}

} // namespace mgpu::planner
