// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Spelling.h"

#include <algorithm>
#include <vector>

namespace mgpu {

bool isIdentifier(std::string_view text) {
  auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && isLetter(text[0]) &&
         std::ranges::all_of(text, [&](char c) {
           return isLetter(c) || (c >= '0' && c <= '9');
         });
}

bool matchesPattern(std::string_view wanted, std::string_view name) {
  size_t w = 0, n = 0, star = std::string_view::npos, behind = 0;
  while (n < name.size())
    if (w < wanted.size() && wanted[w] == '*') {
      star = w++;
      behind = n; // what follows the star is tried from here on
    } else if (w < wanted.size() && wanted[w] == name[n]) {
      ++w;
      ++n;
    } else if (star != std::string_view::npos) {
      w = star + 1;
      n = ++behind;
    } else {
      return false;
    }
  return wanted.find_first_not_of('*', w) == std::string_view::npos;
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1,
                                        std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t k = 0; k <= b.size(); ++k) {
      if (i == 0 || k == 0) {
        cost[i][k] = i + k;
        continue;
      }
      cost[i][k] = std::min({cost[i - 1][k] + 1, cost[i][k - 1] + 1,
                             cost[i - 1][k - 1] + (a[i - 1] != b[k - 1])});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        cost[i][k] = std::min(cost[i][k], cost[i - 2][k - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

std::string didYouMean(std::string_view word,
                       std::span<const std::string> known) {
  constexpr size_t longest = 64; // the table is quadratic
  const std::string *best = nullptr;
  size_t least = word.size() > 2 ? word.size() / 3 + 1 : 0;
  for (const std::string &each : known) {
    if (std::max(word.size(), each.size()) > longest)
      continue;
    const size_t distance = editDistance(word, each);
    if (distance < least) {
      least = distance;
      best = &each;
    }
  }
  return best ? "; did you mean '" + *best + "'?" : "";
}

} // namespace mgpu
