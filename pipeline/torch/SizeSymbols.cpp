// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/SizeSymbols.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace mgpu::pipeline::torch {

namespace {

bool isWordLetter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// Recursive descent; each level of brackets is one of the stack.
class Parser {
public:
  using Symbols = std::map<std::string, int64_t>;
  Parser(std::string_view text, const Symbols *symbols)
      : text(text), symbols(symbols) {}

  std::vector<std::string> found;

  std::optional<int64_t> whole() {
    auto value = sum();
    skipSpace();
    return at == text.size() ? value : std::nullopt;
  }

private:
  static constexpr int mostDepth = 64;

  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skipSpace();
    return at < text.size() && text[at] == c ? (++at, true) : false;
  }
  std::string_view word() {
    skipSpace();
    const size_t begin = at;
    while (at < text.size() && isWordLetter(text[at]))
      ++at;
    return text.substr(begin, at - begin);
  }

  std::optional<int64_t> apply(char what, std::optional<int64_t> a,
                               std::optional<int64_t> b) {
    int64_t result = 0;
    if (!a || !b)
      return std::nullopt;
    switch (what) {
    case '+':
      return __builtin_add_overflow(*a, *b, &result) ? std::nullopt
                                                     : std::optional(result);
    case '-':
      return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt
                                                     : std::optional(result);
    case '*':
      return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt
                                                     : std::optional(result);
    case '/': // towards minus infinity
    case '%':
      if (*b <= 0 || *a == INT64_MIN)
        return std::nullopt;
      result = *a / *b - (*a % *b < 0);
      return what == '/' ? result : *a - result * *b;
    case '<':
      return std::min(*a, *b);
    default:
      return std::max(*a, *b);
    }
  }

  std::optional<int64_t> sum() {
    auto value = product();
    for (;;)
      if (take('+'))
        value = apply('+', value, product());
      else if (take('-'))
        value = apply('-', value, product());
      else
        return value;
  }
  std::optional<int64_t> product() {
    auto value = atom();
    for (;;)
      if (take('*'))
        value = apply('*', value, atom());
      else if (at + 1 < text.size() && text.substr(at, 2) == "//")
        at += 2, value = apply('/', value, atom());
      else if (take('%'))
        value = apply('%', value, atom());
      else
        return value;
  }
  std::optional<int64_t> atom() {
    if (++depth > mostDepth)
      return std::nullopt;
    auto value = atomAt();
    --depth;
    return value;
  }
  std::optional<int64_t> atomAt() {
    if (take('-'))
      return apply('-', 0, atom());
    if (take('(')) {
      auto value = sum();
      return take(')') ? value : std::nullopt;
    }
    const std::string name(word());
    if (name.empty())
      return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(name[0]))) {
      int64_t value = 0;
      auto [end, error] =
          std::from_chars(name.data(), name.data() + name.size(), value);
      return error == std::errc() && end == name.data() + name.size()
                 ? std::optional(value)
                 : std::nullopt;
    }
    if (!take('('))
      return symbol(name);
    return name == "Symbol" ? symbolCall() : call(name);
  }
  std::optional<int64_t> symbol(const std::string &name) {
    found.push_back(name);
    if (!symbols)
      return 1;
    auto value = symbols->find(name);
    return value == symbols->end() ? std::nullopt
                                   : std::optional(value->second);
  }
  /// The rest of Symbol('s77', positive=True, ...).
  std::optional<int64_t> symbolCall() {
    if (!take('\''))
      return std::nullopt;
    const std::string name(word());
    const size_t end = text.find(')', at);
    if (name.empty() || !take('\'') || end == text.npos)
      return std::nullopt;
    at = end + 1;
    return symbol(name);
  }
  std::optional<int64_t> call(std::string_view name) {
    static constexpr std::pair<std::string_view, char> operators[] = {
        {"Add", '+'},      {"Mul", '*'}, {"FloorDiv", '/'},
        {"CleanDiv", '/'}, {"Mod", '%'}, {"PythonMod", '%'},
        {"Min", '<'},      {"Max", '>'}, {"Integer", '='},
    };
    const auto *known = std::ranges::find(
        operators, name, [](auto &pair) { return pair.first; });
    if (known == std::end(operators))
      return std::nullopt;
    auto value = sum();
    while (take(','))
      value = apply(known->second, value, sum());
    return take(')') ? value : std::nullopt;
  }

  std::string_view text;
  const Symbols *symbols;
  size_t at = 0;
  int depth = 0;
};

} // namespace

std::vector<std::string> symbolsOf(std::string_view expression) {
  Parser parser(expression, nullptr);
  (void)parser.whole();
  return std::move(parser.found);
}

std::optional<int64_t> evaluate(std::string_view expression,
                                const std::map<std::string, int64_t> &symbols) {
  return Parser(expression, &symbols).whole();
}

} // namespace mgpu::pipeline::torch
