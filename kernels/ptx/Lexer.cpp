// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Lexer.h"

#include <fmt/format.h>

namespace mgpu::kernels::ptx {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}

  Result<std::vector<Token>> run() {
    for (;;) {
      MGPU_TRY(skip());
      if (at >= text.size())
        break;
      MGPU_TRY(next());
    }
    add(Token::Kind::End, 0);
    return std::move(tokens);
  }

private:
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  void add(Token::Kind kind, size_t length) {
    tokens.push_back({kind, text.substr(at, length), line});
    at += length;
  }

  Result<void> skip() {
    while (at < text.size()) {
      const char c = text[at];
      if (c == '\n')
        ++line;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
        ++at;
      } else if (c == '/' && peek(1) == '/') {
        while (at < text.size() && text[at] != '\n')
          ++at;
      } else if (c == '/' && peek(1) == '*') {
        const size_t end = text.find("*/", at + 2);
        if (end == std::string_view::npos)
          return fail(ErrorKind::Invalid,
                      fmt::format("line {}: a comment has no end", line));
        for (; at < end + 2; ++at)
          line += text[at] == '\n';
      } else {
        break;
      }
    }
    return {};
  }

  Result<void> next() {
    const char c = text[at];
    if (isDigit(c)) {
      add(Token::Kind::Number, numberLength());
    } else if (isLetter(c)) {
      add(Token::Kind::Word, wordLength());
    } else if (c == '"') {
      const size_t end = text.find('"', at + 1);
      const std::string_view inner = text.substr(at + 1, end - at - 1);
      if (end == std::string_view::npos || inner.find('\n') != inner.npos)
        return fail(ErrorKind::Invalid,
                    fmt::format("line {}: a string has no end", line));
      tokens.push_back({Token::Kind::Text, inner, line});
      at = end + 1;
    } else if (std::string_view(",;{}()[]<>=+-!|@*&~?:/^").find(c) !=
               std::string_view::npos) {
      add(Token::Kind::Mark, 1);
    } else {
      return fail(ErrorKind::Invalid,
                  fmt::format("line {}: the letter of code {} is none of PTX's",
                              line, int(uint8_t(c))));
    }
    return {};
  }

  size_t wordLength() const {
    size_t length = 1;
    for (;; ++length) {
      const char c = peek(length);
      if (c == ':' && peek(length + 1) == ':' && isLetter(peek(length + 2)))
        ++length;
      else if (!isLetter(c) && !isDigit(c))
        return length;
    }
  }

  /// 0fXXXXXXXX, 0x.., 017, 0b1, 12U, 1.5e-3.
  size_t numberLength() const {
    const bool isDecimal = isDigit(peek(1)) || peek(1) == '.' ||
                           peek(0) != '0' || peek(1) == 'e' || peek(1) == 'E';
    size_t length = 1;
    for (;; ++length) {
      const char c = peek(length), before = peek(length - 1);
      const bool isSign = (c == '-' || c == '+') && isDecimal &&
                          (before == 'e' || before == 'E');
      if (!isSign && !isDigit(c) && (!isLetter(c) || c == '%' || c == '$'))
        return length;
    }
  }

  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
  std::vector<Token> tokens;
};

} // namespace

Result<std::vector<Token>> tokensOf(std::string_view text) {
  return Lexer(text).run();
}

} // namespace mgpu::kernels::ptx
