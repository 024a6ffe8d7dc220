// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/KernelFacts.h"

#include "support/JsonFields.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

void fields(JsonFields &f, AffineForm &form) {
  std::vector<int64_t> terms;
  for (auto [counter, coefficient] : form.terms)
    terms.insert(terms.end(), {counter, coefficient});
  f("constant", form.constant);
  f("terms", terms); // a counter and its coefficient in turn
  f.require(terms.size() % 2 == 0, "terms");
  if (!f.reads())
    return;
  for (size_t k = 0; k + 1 < terms.size(); k += 2) {
    f.require(terms[k] >= 0 && terms[k] <= UINT32_MAX, "terms");
    form.terms.push_back({uint32_t(terms[k]), terms[k + 1]});
  }
}

void fields(JsonFields &f, AffineCounters &counters) {
  std::vector<uint32_t> tied;
  std::vector<AffineForm> ties;
  for (const auto &[counter, tie] : counters.ties) {
    tied.push_back(counter);
    ties.push_back(tie);
  }
  f("sizes", counters.sizes);
  f("tied", tied);
  f("ties", ties);
  f.require(tied.size() == ties.size(), "ties");
  for (size_t k = 0; f.reads() && k < std::min(tied.size(), ties.size()); ++k)
    counters.ties[tied[k]] = ties[k];
}

static void fields(JsonFields &f, Product &product) {
  f("m", product.m);
  f("n", product.n);
  f("k", product.k);
  f("batch", product.batch);
  f("factors", product.factors);
  f("sums", product.sums);
  f("overwrites", product.overwrites);
  f("is_turned", product.isTurned);
}

static void fields(JsonFields &f, KernelFacts::Place &place) {
  f("times", place.times);
  f("trips", place.trips);
}

static void fields(JsonFields &f, KernelFacts::Buffer &buffer) {
  f("is_written", buffer.isWritten);
  f("loads", buffer.loads);
}

static void fields(JsonFields &f, KernelFacts::Step &step) {
  auto kind = uint32_t(step.kind);
  f("kind", kind);
  f.require(kind <= uint32_t(KernelFacts::Step::Kind::Store), "kind");
  step.kind = KernelFacts::Step::Kind(kind);
  f("place", step.place);
  f("instructions", step.instructions);
  if (f.reads() || !step.function.empty())
    f.added("function", step.function);
  f("is_address", step.isAddress);
  f("is_common", step.isCommon);
  f("buffer", step.buffer);
  f("width", step.width);
  f("bytes", step.bytes);
  f("address", step.address);
}

void fields(JsonFields &f, KernelFacts &facts) {
  f("kernel", facts.kernel);
  f("grid", facts.grid);
  f("block", facts.block);
  f("product", facts.product);
  f("counters", facts.counters);
  f("places", facts.places);
  f("buffers", facts.buffers);
  f("steps", facts.steps);
}

bool KernelFacts::areCountable() const {
  constexpr uint32_t mostThreads = 1024, mostBlocks = INT32_MAX;
  constexpr size_t mostSteps = 1 << 16;
  constexpr double most = 1e300;
  if (product)
    for (double extent : {product->m, product->n, product->k, product->batch})
      if (!(extent >= 1 && extent <= 0x1p48))
        return false;
  const uint32_t ids[] = {block.x, block.y, block.z, grid.x, grid.y, grid.z};
  if (!counters.areCountable() || steps.size() > mostSteps)
    return false;
  for (uint32_t k = 0; k < std::size(ids); ++k)
    if (counters.sizeOf(k) != ids[k] ||
        ids[k] > (k < 3 ? mostThreads : mostBlocks))
      return false;
  for (const Place &place : places)
    if (!(place.times >= 0 && place.times < most))
      return false;
  return std::ranges::all_of(steps, [&](const Step &step) {
    const bool isAccess =
        step.kind == Step::Kind::Load || step.kind == Step::Kind::Store;
    return step.place < places.size() && step.instructions >= 0 &&
           step.instructions < most && step.function.size() <= 32 &&
           step.width >= 1 && step.width <= 16 && step.bytes >= step.width &&
           step.bytes <= 1 << 16 &&
           (!isAccess || step.buffer < buffers.size()) &&
           (!step.address || counters.areCountable(*step.address));
  });
}

} // namespace mgpu::planner
