// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/AffineForm.h"

#include <algorithm>

namespace mgpu::planner {

void AffineForm::add(const AffineForm &other, int64_t factor) {
  constant += factor * other.constant;
  for (auto [counter, coefficient] : other.terms) {
    auto at = std::ranges::find_if(
        terms, [&, c = counter](const auto &term) { return term.first == c; });
    if (at == terms.end())
      terms.push_back({counter, factor * coefficient});
    else
      at->second += factor * coefficient;
  }
  std::erase_if(terms, [](const auto &term) { return term.second == 0; });
}

std::optional<unsigned> AffineCounters::threadAxisOf(uint32_t counter) {
  return counter < firstBlockCounter ? std::optional(counter) : std::nullopt;
}

std::optional<unsigned> AffineCounters::blockAxisOf(uint32_t counter) {
  if (counter < firstBlockCounter || counter >= firstBlockCounter + 3)
    return std::nullopt;
  return counter - firstBlockCounter;
}

uint32_t AffineCounters::addCounter(int64_t size) {
  sizes.push_back(size);
  return uint32_t(sizes.size() - 1);
}

const AffineForm *AffineCounters::tieOf(uint32_t counter) const {
  auto at = ties.find(counter);
  return at == ties.end() ? nullptr : &at->second;
}

bool AffineCounters::isFree(const AffineForm &form) const {
  return std::ranges::none_of(
      form.terms, [&](const auto &term) { return ties.contains(term.first); });
}

std::pair<int64_t, int64_t>
AffineCounters::range(const AffineForm &form) const {
  int64_t low = form.constant, high = form.constant;
  for (auto [counter, coefficient] : form.terms) {
    int64_t reach = coefficient * (sizes[counter] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

bool AffineCounters::isOfIds(const AffineForm &form) const {
  return std::ranges::all_of(form.terms, [&](const auto &term) {
    const AffineForm *tie = tieOf(term.first);
    if (!tie)
      return term.first < 2 * firstBlockCounter;
    AffineForm rest = *tie;
    rest.terms.resize(rest.terms.size() - 2); // the quotient and the remainder
    return isOfIds(rest);
  });
}

int64_t AffineCounters::valueAt(const AffineForm &form,
                                std::span<const int64_t> ids) const {
  auto counterAt = [&](uint32_t counter) -> int64_t {
    if (counter < ids.size())
      return ids[counter];
    const AffineForm *tie = tieOf(counter);
    if (!tie)
      return 0;
    // divide() puts -divisor * quotient and then -remainder behind the rest.
    AffineForm rest = *tie;
    const uint32_t remainder = rest.terms.back().first;
    const int64_t divisor = -rest.terms[rest.terms.size() - 2].second;
    rest.terms.resize(rest.terms.size() - 2);
    const int64_t value = valueAt(rest, ids);
    return counter == remainder ? value % divisor : value / divisor;
  };
  int64_t sum = form.constant;
  for (auto [counter, coefficient] : form.terms)
    sum += coefficient * counterAt(counter);
  return sum;
}

bool AffineCounters::fitsBits(const AffineForm &form, int64_t factor,
                              unsigned width) const {
  __int128 low = __int128(form.constant) * factor, high = low;
  for (auto [counter, coefficient] : form.terms) {
    __int128 scaled = __int128(coefficient) * factor;
    if (scaled != int64_t(scaled))
      return false;
    __int128 reach = scaled * (sizes[counter] - 1);
    (reach < 0 ? low : high) += reach;
  }
  __int128 limit = __int128(1) << (width - 1);
  return low >= -limit && high < limit;
}

bool AffineCounters::addScaled(AffineForm &sum, const AffineForm &form,
                               int64_t factor) const {
  constexpr unsigned addressBits = 59;
  if (!fitsBits(form, factor, addressBits))
    return false;
  sum.add(form, factor);
  return fitsBits(sum, 1, addressBits);
}

bool AffineCounters::areCountable() const {
  constexpr int64_t mostSize = int64_t(1) << 48;
  constexpr size_t mostLookups = 1024;
  if (sizes.size() < 2 * firstBlockCounter ||
      std::ranges::any_of(
          sizes, [](int64_t size) { return size < 1 || size > mostSize; }))
    return false;
  std::map<uint32_t, size_t> lookups; // of valueAt(), by tied counter
  for (const auto &[counter, tie] : ties) {
    const size_t count = tie.terms.size();
    if (count < 2 || !areCountable(tie))
      return false;
    // The quotient and the remainder are newer than what they are of.
    const auto [quotient, less] = tie.terms[count - 2];
    const auto [remainder, one] = tie.terms[count - 1];
    if (quotient < 2 * firstBlockCounter || quotient >= remainder ||
        less >= 0 || one != -1 || (counter != quotient && counter != remainder))
      return false;
    size_t &sum = lookups[counter] = 1;
    for (size_t k = 0; k + 2 < count; ++k) {
      const uint32_t older = tie.terms[k].first;
      if (older >= quotient)
        return false;
      auto at = lookups.find(older);
      sum += at == lookups.end() ? 1 : at->second;
    }
    if (sum > mostLookups)
      return false;
  }
  return true;
}

bool AffineCounters::areCountable(const AffineForm &form) const {
  constexpr size_t mostTerms = 64;
  constexpr unsigned bits = 48;
  return form.terms.size() <= mostTerms &&
         std::ranges::all_of(form.terms,
                             [&](const auto &term) {
                               return term.first < sizes.size() &&
                                      sizes[term.first] > 1;
                             }) &&
         fitsBits(form, 1, bits);
}

} // namespace mgpu::planner
