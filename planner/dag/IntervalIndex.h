// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_INTERVALINDEX_H
#define MGPU_PLANNER_DAG_INTERVALINDEX_H

// A multiset of half-open intervals that answers "which of them meet [b, e)".
// Intervals are kept apart by power-of-two length, each class ordered by its
// begin: a query looks at most one length below b, so n intervals that are
// disjoint within a class cost O(classes * log n + answers) per query. A few
// intervals are a list.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace mgpu::planner {

template <typename T>
class IntervalIndex {
public:
  /// Empty intervals are not kept: nothing meets them.
  void insert(int64_t begin, int64_t end, T value) {
    if (begin >= end)
      return;
    if (classes.empty() && few.size() < mostFew) {
      few.push_back({begin, end, std::move(value)});
      return;
    }
    for (Interval &each : std::exchange(few, {}))
      insertSorted(each.begin, each.end, std::move(each.value));
    insertSorted(begin, end, std::move(value));
  }

  /// Calls `visit(begin, end, value)` for each interval that meets [begin,
  /// end); one for which it returns false is removed. `visit` must not insert.
  template <typename Visit>
  void meet(int64_t begin, int64_t end, Visit visit) {
    if (begin >= end)
      return;
    std::erase_if(few, [&](const Interval &each) {
      return each.begin < end && each.end > begin &&
             !visit(each.begin, each.end, each.value);
    });
    for (auto &[length, groups] : classes) {
      // Every interval of this class is shorter than 2^length.
      int64_t reach = length >= 62 ? INT64_MAX : int64_t(1) << length;
      int64_t low = begin < INT64_MIN + reach ? INT64_MIN : begin - reach;
      auto it = groups.lower_bound(low);
      while (it != groups.end() && it->first < end) {
        Group &group = it->second;
        if (group.maxEnd > begin)
          std::erase_if(group.entries, [&, first = it->first](auto &entry) {
            return entry.first > begin &&
                   !visit(first, entry.first, entry.second);
          });
        it = group.entries.empty() ? groups.erase(it) : std::next(it);
      }
    }
  }

private:
  static constexpr size_t mostFew = 8;
  struct Interval {
    int64_t begin, end;
    T value;
  };
  /// Intervals with one begin. maxEnd may be stale upwards after removals.
  struct Group {
    int64_t maxEnd = 0;
    std::vector<std::pair<int64_t, T>> entries;
  };
  using Groups = std::map<int64_t, Group>;

  void insertSorted(int64_t begin, int64_t end, T value) {
    unsigned width = std::bit_width(uint64_t(end) - uint64_t(begin));
    Group &group = classOf(width)[begin];
    group.maxEnd = group.entries.empty() ? end : std::max(group.maxEnd, end);
    group.entries.emplace_back(end, std::move(value));
  }

  Groups &classOf(unsigned width) {
    for (auto &[length, groups] : classes)
      if (length == width)
        return groups;
    return classes.emplace_back(width, Groups()).second;
  }

  std::vector<Interval> few; ///< while there are no classes
  std::vector<std::pair<unsigned, Groups>> classes;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_INTERVALINDEX_H
