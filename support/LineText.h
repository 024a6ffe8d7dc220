// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_LINETEXT_H
#define MGPU_SUPPORT_LINETEXT_H

// Line-oriented text forms (plans, programs): words between blanks, names in
// double quotes, one fact a line. Blank lines and lines that start with # are
// skipped.

#include "support/Result.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace mgpu {

/// Where byte `at` of `text` is, both counted from 1: "line 2, column 7".
inline std::string placeIn(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line = size_t(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') + 1; // npos + 1 is 0
  return "line " + std::to_string(line + 1) + ", column " +
         std::to_string(before.size() - start + 1);
}

/// `text` in double quotes; quotes, backslashes and control characters are
/// escaped, so that the result has one line. LineReader::quoted() reads it.
std::string quoteText(std::string_view text);

/// The shortest text that reads back to the same double.
std::string numberText(double value);

/// Reads the words of one line; every failure names the line.
class LineReader {
public:
  /// `what` is what an error calls the text: "plan".
  LineReader(std::string_view what, std::string_view line, size_t number)
      : what(what), rest(line), lineNumber(number) {
    skipBlanks();
  }

  tl::unexpected<Error> bad(std::string message) const;
  bool atEnd() const { return rest.empty(); }
  Result<void> expectEnd() const;
  std::string_view peek() const { return rest.substr(0, wordLength()); }
  std::string_view word();
  Result<void> keyword(std::string_view expected);
  /// The next word as a T in decimal; errors call it `noun`.
  template <typename T>
  Result<T> integer(std::string_view noun) {
    return integerOf<T>(word(), noun);
  }
  template <typename T>
  Result<T> integerOf(std::string_view text, std::string_view noun) const {
    T value{};
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() ||
        end != text.data() + text.size())
      return bad(
          fmt::format("\"{}\" is not a valid {}", text.substr(0, 40), noun));
    return value;
  }
  /// A finite number that is not negative; errors call it `noun`.
  Result<double> number(std::string_view noun);
  Result<std::string> quoted();

private:
  size_t wordLength() const;
  void skipBlanks();

  std::string_view what, rest;
  size_t lineNumber;
};

/// Hands out the lines of a text that have content.
class LineSource {
public:
  LineSource(std::string_view what, std::string_view text)
      : what(what), text(text) {}
  /// Reads the first line, "KEYWORD VERSION". Unsupported for another version;
  /// `again` is the command that makes such a text.
  Result<void> title(std::string_view keyword, uint32_t version,
                     std::string_view again);
  /// The next line with content; an empty one at the end of the text.
  LineReader next();
  bool atEnd() const { return text.empty(); }
  size_t number() const { return lineNumber; } ///< of the line last given

private:
  std::string_view what, text;
  size_t lineNumber = 0;
};

} // namespace mgpu

#endif // MGPU_SUPPORT_LINETEXT_H
