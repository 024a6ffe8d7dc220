// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Parser.h"

#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::kernels::ptx {

tl::unexpected<Error> Parser::wrong(std::string_view what) const {
  const Token &token = peek();
  return fail(ErrorKind::Invalid,
              token.kind == Token::Kind::End
                  ? fmt::format("line {}: the text ends where {} is expected",
                                token.line, what)
                  : fmt::format("line {}: '{}' is where {} is expected",
                                token.line, token.text.substr(0, 60), what));
}

bool Parser::takeIf(std::string_view mark) {
  if (!peek().is(mark))
    return false;
  take();
  return true;
}

Result<void> Parser::expect(std::string_view mark) {
  if (takeIf(mark))
    return {};
  return wrong(fmt::format("'{}'", mark));
}

Result<std::string_view> Parser::expectWord(const char *what) {
  if (peek().kind != Token::Kind::Word)
    return wrong(what);
  return take().text;
}

Result<uint64_t> Parser::expectCount(uint64_t most) {
  MGPU_TRY_ASSIGN(const int64_t value, expression());
  if (value < 0 || uint64_t(value) > most)
    return fail(ErrorKind::Invalid,
                fmt::format("line {}: {} is not between 0 and {}", peek().line,
                            value, most));
  return uint64_t(value);
}

/// For directives that end with their line.
void Parser::skipLine() {
  const uint32_t line = peek().line;
  while (peek().kind != Token::Kind::End && peek().line == line)
    take();
}

Result<void> Parser::skipBraces() {
  MGPU_TRY(expect("{"));
  for (size_t depth = 1; depth > 0;) {
    if (peek().kind == Token::Kind::End)
      return wrong("'}'");
    const Token &token = take();
    depth += token.is("{");
    depth -= token.is("}");
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Constants (sections 4.5.1 to 4.5.6)
//===----------------------------------------------------------------------===//

Result<int64_t> Parser::integerOf(std::string_view text) const {
  int base = 10;
  std::string_view digits = text;
  if (digits.ends_with("U") || digits.ends_with("u"))
    digits.remove_suffix(1);
  if (digits.starts_with("0x") || digits.starts_with("0X"))
    base = 16, digits.remove_prefix(2);
  else if (digits.starts_with("0b") || digits.starts_with("0B"))
    base = 2, digits.remove_prefix(2);
  else if (digits.size() > 1 && digits[0] == '0')
    base = 8, digits.remove_prefix(1);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(
      digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size())
    return fail(ErrorKind::Invalid,
                fmt::format("line {}: '{}' is no number of 64 bits",
                            peek().line, text));
  return int64_t(value);
}

namespace {

struct Operator {
  std::string_view first, second; ///< marks; most have one
  int strength;
};
constexpr Operator operators[] = {{"|", "", 1},  {"^", "", 2},  {"&", "", 3},
                                  {"<", "<", 4}, {">", ">", 4}, {"+", "", 5},
                                  {"-", "", 5},  {"*", "", 6},  {"/", "", 6}};

int64_t apply(char mark, int64_t a, int64_t b) {
  const auto x = uint64_t(a), y = uint64_t(b);
  switch (mark) {
  case '|':
    return int64_t(x | y);
  case '^':
    return int64_t(x ^ y);
  case '&':
    return int64_t(x & y);
  case '<':
    return y < 64 ? int64_t(x << y) : 0;
  case '>':
    return a >> (y < 64 ? y : 63);
  case '+':
    return int64_t(x + y);
  case '-':
    return int64_t(x - y);
  case '*':
    return int64_t(x * y);
  default:
    return b == 0 ? 0 : b == -1 ? int64_t(0 - x) : a / b;
  }
}

} // namespace

Result<int64_t> Parser::expression(int strength) {
  constexpr int unary = 100;
  int64_t value = 0;
  if (strength > 8 * unary)
    return wrong("a shorter expression");
  if (takeIf("-")) {
    MGPU_TRY_ASSIGN(const int64_t inner, expression(strength + unary));
    value = int64_t(0 - uint64_t(inner));
  } else if (takeIf("~")) {
    MGPU_TRY_ASSIGN(const int64_t inner, expression(strength + unary));
    value = ~inner;
  } else if (takeIf("(")) {
    MGPU_TRY_ASSIGN(value, expression(strength / unary * unary + unary));
    MGPU_TRY(expect(")"));
  } else if (peek().is("WARP_SZ")) {
    take();
    value = 32;
  } else {
    if (peek().kind != Token::Kind::Number)
      return wrong("a number");
    MGPU_TRY_ASSIGN(value, integerOf(take().text));
  }
  // Behind a sign or within a parenthesis the hundreds count the depth.
  const int floor = strength % unary;
  for (;;) {
    const Operator *found = nullptr;
    for (const Operator &each : operators)
      if (each.strength > floor && peek().is(each.first) &&
          (each.second.empty() || peek(1).is(each.second)))
        found = &each;
    if (!found)
      return value;
    take();
    if (!found->second.empty())
      take();
    MGPU_TRY_ASSIGN(const int64_t right,
                    expression(strength / unary * unary + found->strength));
    value = apply(found->first[0], value, right);
  }
}

/// An integer expression, or a float: 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX, 1.5e-3.
Result<Operand> Parser::number() {
  Operand out;
  const bool isMinus = peek().is("-");
  const Token &token = peek(isMinus ? 1 : 0);
  const std::string_view text = token.text;
  const bool isBits = text.size() > 2 && text[0] == '0' &&
                      std::strchr("fFdD", text[1]) != nullptr;
  const bool isHex = text.starts_with("0x") || text.starts_with("0X");
  if (token.kind != Token::Kind::Number ||
      (!isBits && (isHex || text.find_first_of(".eE") == text.npos))) {
    out.kind = Operand::Kind::Integer;
    MGPU_TRY_ASSIGN(out.value, expression());
    return out;
  }
  out.kind = Operand::Kind::Float;
  if (isMinus)
    take();
  take();
  std::from_chars_result read{};
  const char *end = text.data() + text.size();
  if (isBits) {
    uint64_t bits = 0;
    read = std::from_chars(text.data() + 2, end, bits, 16);
    out.floatBits = text.size() == 10 ? 32 : 64;
    if (text.size() != 10 && text.size() != 18)
      return wrong("a float of 8 or 16 digits before it");
    out.value = int64_t(bits ^ (uint64_t(isMinus) << (out.floatBits - 1)));
  } else {
    read = std::from_chars(text.data(), end, out.number);
    out.number = isMinus ? -out.number : out.number;
  }
  if (read.ec == std::errc::invalid_argument || read.ptr != end)
    return wrong("a float before it");
  return out;
}

//===----------------------------------------------------------------------===//
// Operands (section 6)
//===----------------------------------------------------------------------===//

Result<Operand> Parser::list(Operand::Kind kind, std::string_view end,
                             bool isCall) {
  Operand out;
  out.kind = kind;
  take();
  while (!takeIf(end)) {
    if (!out.parts.empty())
      MGPU_TRY(expect(","));
    if (peek().is("{") && kind == Operand::Kind::List)
      return wrong("an element of a vector");
    MGPU_TRY_ASSIGN(Operand part, operand(isCall));
    if (out.parts.size() >= 1024)
      return wrong("an end of the list");
    out.parts.push_back(std::move(part));
  }
  return out;
}

/// "[%rd1+8]", "[map, {%r1, %r2}]", "[map, {..}, {..}]".
Result<Operand> Parser::address() {
  Operand out;
  take();
  if (peek().kind == Token::Kind::Word && !peek().is("WARP_SZ")) {
    out.name = take().text;
    if (peek().is("+") || peek().is("-")) {
      takeIf("+"); // "+-8" is written, too
      MGPU_TRY_ASSIGN(out.value, expression());
    }
  } else {
    MGPU_TRY_ASSIGN(out.value, expression());
  }
  out.kind = Operand::Kind::Address;
  while (takeIf(",")) {
    if (!peek().is("{"))
      return wrong("'{'");
    MGPU_TRY_ASSIGN(Operand part, list(Operand::Kind::List, "}", false));
    out.parts.push_back(std::move(part));
    if (out.parts.size() > 4)
      return wrong("']'");
  }
  MGPU_TRY(expect("]"));
  return out;
}

Result<Operand> Parser::operand(bool isCall) {
  if (peek().is("["))
    return address();
  if (peek().is("{"))
    return list(Operand::Kind::List, "}", false);
  if (isCall && peek().is("("))
    return list(Operand::Kind::Group, ")", false);
  Operand out;
  out.isNegated = takeIf("!");
  if (peek().kind != Token::Kind::Word || peek().is("WARP_SZ")) {
    MGPU_TRY_ASSIGN(Operand value, number());
    value.isNegated = out.isNegated;
    return value;
  }
  out.name = take().text;
  if (out.name == "_")
    out.kind = Operand::Kind::Sink;
  if (takeIf("|")) {
    Operand second;
    second.isNegated = takeIf("!");
    MGPU_TRY_ASSIGN(second.name, expectWord("a register"));
    second.kind =
        second.name == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
    out.parts.push_back(std::move(second));
  } else if (peek().is("+") || peek().is("-")) {
    takeIf("+");
    MGPU_TRY_ASSIGN(out.value, expression());
  }
  return out;
}

} // namespace mgpu::kernels::ptx
