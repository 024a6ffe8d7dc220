// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/MendTrace.h"

#include <algorithm>
#include <cctype>

namespace mgpu::planner {

namespace {

/// Whether a backslash and what follows it, `rest`, are an escape of JSON.
bool isEscape(std::string_view rest) {
  if (rest.size() < 2)
    return true; // the text is cut short, which is said of it as it is
  if (rest[1] != 'u')
    return std::string_view("\"\\/bfnrt").find(rest[1]) !=
           std::string_view::npos;
  const std::string_view digits = rest.substr(2, 4);
  return std::all_of(digits.begin(), digits.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// Mends the string that begins at `at`; gives where it ends.
size_t mendString(std::string &text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte >= 0x7f)
      text[at] = '?';
    else if (byte != '\\')
      continue;
    else if (isEscape(std::string_view(text).substr(at)))
      ++at;
    else
      text[at] = '/';
  }
  return at;
}

/// Where a word of letters that begins at `at` ends.
size_t endOfWord(std::string_view text, size_t at) {
  while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])))
    ++at;
  return at;
}

bool isNoNumber(std::string_view word) {
  std::string lower(word);
  for (char &c : lower)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower == "inf" || lower == "infinity" || lower == "nan";
}

/// Whether nothing but the end of a list follows the comma at `at`.
bool isLastComma(std::string_view text, size_t at) {
  const size_t next = text.find_first_not_of(" \t\r\n", at + 1);
  return next != std::string_view::npos &&
         (text[next] == ']' || text[next] == '}');
}

} // namespace

std::string mendTrace(std::string_view given) {
  std::string text(given);
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      at = mendString(text, at);
    } else if (text[at] == ',') {
      if (isLastComma(text, at))
        text[at] = ' ';
    } else if (std::isalpha(static_cast<unsigned char>(text[at]))) {
      const size_t end = endOfWord(text, at);
      const size_t first = at - size_t(at > 0 && text[at - 1] == '-');
      if (isNoNumber(std::string_view(text).substr(at, end - at))) {
        std::fill(text.begin() + first, text.begin() + end, ' ');
        text.replace(first, 2, "-1");
      }
      at = end - 1;
    }
  }
  return text;
}

} // namespace mgpu::planner
