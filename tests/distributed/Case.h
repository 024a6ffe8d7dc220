// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_DISTRIBUTED_CASE_H
#define MGPU_TESTS_DISTRIBUTED_CASE_H

// Programs as files, with what one process makes of them: made once where there
// is a compiler (MakeCases.cpp), run by several processes that have none
// (RunCases.cpp).

#include "planner/dag/ProgramText.h"
#include "support/Bytes.h"
#include "tests/conformance/Execute.h"

namespace mgpu::conformance {

struct Case {
  std::string name, program; ///< toText() of it
  planner::Blobs blobs;
  std::vector<std::string> plans; ///< toText() of them
  std::vector<Bytes> kernels;     ///< by KernelId
  HostData inputs, expected;      ///< before and after two replays
};

inline void put(Bytes &to, std::span<const std::byte> bytes) {
  append(to, uint64_t(bytes.size()));
  append(to, bytes);
}

inline Bytes takeBytes(ByteReader &from) {
  const std::string text = from.text();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <typename Map>
void putMap(Bytes &to, const Map &map) {
  append(to, uint64_t(map.size()));
  for (const auto &[name, bytes] : map) {
    append(to, name);
    put(to, bytes);
  }
}

template <typename Map>
void takeMap(ByteReader &from, Map &map) {
  for (auto left = from.take<uint64_t>(); left > 0; --left) {
    std::string name = from.text();
    map[std::move(name)] = takeBytes(from);
  }
}

inline void put(Bytes &to, const Case &each) {
  append(to, each.name);
  append(to, each.program);
  putMap(to, each.blobs);
  append(to, uint64_t(each.plans.size()));
  for (const std::string &plan : each.plans)
    append(to, plan);
  append(to, uint64_t(each.kernels.size()));
  for (const Bytes &kernel : each.kernels)
    put(to, kernel);
  putMap(to, each.inputs);
  putMap(to, each.expected);
}

inline Case takeCase(ByteReader &from) {
  Case out;
  out.name = from.text();
  out.program = from.text();
  takeMap(from, out.blobs);
  for (auto left = from.take<uint64_t>(); left > 0; --left)
    out.plans.push_back(from.text());
  for (auto left = from.take<uint64_t>(); left > 0; --left)
    out.kernels.push_back(takeBytes(from));
  takeMap(from, out.inputs);
  takeMap(from, out.expected);
  return out;
}

} // namespace mgpu::conformance

#endif // MGPU_TESTS_DISTRIBUTED_CASE_H
