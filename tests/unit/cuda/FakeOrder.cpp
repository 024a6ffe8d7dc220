// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeOrder.h"

#include <algorithm>

namespace mgpu::fake {

/// Accesses come in order of their addresses, mostly.
void OrderWatch::add(Spans &spans, Span span) {
  if (!spans.empty() && spans.back().begin <= span.begin &&
      span.begin <= spans.back().end) {
    spans.back().end = std::max(spans.back().end, span.end);
    return;
  }
  spans.push_back(span);
  if (spans.size() >= 4096 && (spans.size() & (spans.size() - 1)) == 0)
    merge(spans);
}

void OrderWatch::merge(Spans &spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Span &each : spans)
    if (kept && each.begin <= spans[kept - 1].end)
      spans[kept - 1].end = std::max(spans[kept - 1].end, each.end);
    else
      spans[kept++] = each;
  spans.resize(kept);
}

void OrderWatch::touch(size_t step, uint64_t address, uint64_t bytes,
                       bool writes) {
  Touched &touched = steps[step];
  add(writes ? touched.writes : touched.reads, {address, address + bytes});
}

OrderWatch::Span OrderWatch::meet(const Spans &a, const Spans &b) {
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const uint64_t begin = std::max(a[i].begin, b[k].begin),
                   end = std::min(a[i].end, b[k].end);
    if (begin < end)
      return {begin, end};
    ++(a[i].end < b[k].end ? i : k);
  }
  return {0, 0};
}

std::vector<OrderWatch::Fault>
OrderWatch::faults(const std::vector<std::vector<size_t>> &dependencies) {
  const size_t count = dependencies.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  std::vector<Fault> found;
  for (auto &[step, touched] : steps) {
    merge(touched.reads);
    merge(touched.writes);
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t dependency : dependencies[k]) {
      before[k][dependency] = true;
      for (size_t i = 0; i < dependency; ++i)
        before[k][i] = before[k][i] || before[dependency][i];
    }
    const auto own = steps.find(k);
    for (auto other = steps.begin(); other != own && own != steps.end();
         ++other) {
      if (before[k][other->first])
        continue;
      for (const Span span : {meet(other->second.writes, own->second.writes),
                              meet(other->second.writes, own->second.reads),
                              meet(other->second.reads, own->second.writes)})
        if (span.begin < span.end) {
          found.push_back({other->first, k, span.begin, span.end - span.begin});
          break;
        }
    }
  }
  return found;
}

} // namespace mgpu::fake
