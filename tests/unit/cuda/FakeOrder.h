// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKEORDER_H
#define MGPU_TESTS_UNIT_CUDA_FAKEORDER_H

// Finds edges that a graph lacks: two of its nodes touch a byte, one of them
// writes it, and no path of edges leads from one to the other.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mgpu::fake {

class OrderWatch {
public:
  /// Notes that step `step` of the launch touches these bytes.
  void touch(size_t step, uint64_t address, uint64_t bytes, bool writes);
  struct Fault {
    size_t first, second; ///< steps
    uint64_t address, bytes;
  };
  /// The first bytes of each pair of steps, given what each one follows, which
  /// are steps before it.
  std::vector<Fault>
  faults(const std::vector<std::vector<size_t>> &dependencies);

private:
  struct Span {
    uint64_t begin, end;
  };
  using Spans = std::vector<Span>;
  static void add(Spans &spans, Span span);
  static void merge(Spans &spans);
  /// The first bytes that both have; empty where they have none.
  static Span meet(const Spans &a, const Spans &b);
  struct Touched {
    Spans reads, writes;
  };
  std::map<size_t, Touched> steps;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKEORDER_H
