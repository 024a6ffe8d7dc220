// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/CheckText.h"

#include "support/LineText.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

namespace {

struct Magic {
  std::string_view bytes, what, remedy;
};
constexpr Magic magics[] = {
    {"ML\xefR", "MLIR bytecode",
     "give it as a file or on the standard input, where it is decoded"},
    {{"\xfd\x37zXZ\0", 6}, "compressed with xz", "`xz -d` unpacks it"},
    {"\x1f\x8b", "compressed with gzip", "`gzip -d` unpacks it"},
    {"\x28\xb5\x2f\xfd", "compressed with zstd", "`zstd -d` unpacks it"},
    {"BZh", "compressed with bzip2", "`bzip2 -d` unpacks it"},
    {"PK\x03\x04", "a zip archive",
     "a .pt2 of PyTorch is read from a file, not from a pipe"},
    {"\x93NUMPY", "an array of NumPy", "`--arg NAME=FILE.npy` gives it"},
    {"\x7f"
     "ELF",
     "a compiled program or library", "give its source's MLIR"},
    {"BC\xc0\xde", "LLVM bitcode", "lower the MLIR it was made of instead"},
};

/// A language that programs are often written in, by what its files begin with
/// or end in.
struct Language {
  std::string_view begin, ending, what, remedy;
};
constexpr std::string_view exportPython =
    "export the function as StableHLO text (docs/from-jax.md, "
    "docs/from-pytorch.md), or build a graph by calls (docs/builder.md)";
constexpr std::string_view lowerMlir =
    "give the MLIR it was made of, before it is lowered";
constexpr Language languages[] = {
    {"import ", ".py", "Python", exportPython},
    {"from ", ".py", "Python", exportPython},
    {"def ", ".py", "Python", exportPython},
    {"#!/", ".py", "a script", exportPython},
    {"HloModule", ".hlo", "XLA's HLO", "export it as StableHLO text"},
    {"; ModuleID", ".ll", "LLVM IR", lowerMlir},
    {"target triple", ".ll", "LLVM IR", lowerMlir},
    {".version", ".ptx", "PTX", lowerMlir},
    {"<!DOCTYPE", ".html", "a page of HTML", "name a program"},
    {"mgpu-plan ", ".plan", "a plan", "give its program, with --plan FILE"},
    {"mgpu-certificate ", ".cert", "a certificate",
     "give its program, with --plan and --certificate"},
};

/// Open brackets, by kind, and how deep what they hold is.
class Nesting {
public:
  explicit Nesting(std::string_view text) : text(text) {}

  /// Past the character at `at`, strings, comments and names as a whole; false
  /// where the text is nested too deep there.
  bool step(size_t &at);

private:
  struct Open {
    char bracket;
    unsigned signs; ///< signs of the term that it is in
  };

  bool open(char bracket) {
    if (depth == mostNesting)
      return false;
    stack[depth++] = {bracket, signs};
    signs = 0;
    return reach(depth);
  }
  /// Brackets left open inside are dropped: "<" need not be a bracket. A
  /// bracket that closes nothing is the parser's to refuse.
  void close(char bracket) {
    for (unsigned at = depth; at-- > 0;)
      if (stack[at].bracket == bracket) {
        depth = at;
        signs = stack[at].signs;
        return;
      }
  }
  bool sign() { return ++signs <= mostSigns; }
  bool reach(unsigned level) {
    if (level > mostNesting)
      return false;
    if (defined != aliases.end())
      defined->second = std::max(defined->second, level - definedAt);
    return true;
  }
  bool alias(size_t &at);
  bool isWord(size_t at, std::string_view word) const {
    return text[at - 1] == ' ' && text.substr(at).starts_with(word);
  }

  std::string_view text;
  std::array<Open, mostNesting> stack;
  unsigned depth = 0, signs = 0;
  /// "#a" or "!a", which a line of its own gives a meaning: how deep that is.
  std::map<std::string_view, unsigned> aliases;
  std::map<std::string_view, unsigned>::iterator defined = aliases.end();
  unsigned definedAt = 0;
};

/// An alias or the name of a dialect.
bool Nesting::alias(size_t &at) {
  size_t end = at + 1;
  while (end < text.size() && (std::isalnum((unsigned char)text[end]) ||
                               text[end] == '_' || text[end] == '$'))
    ++end;
  const std::string_view name = text.substr(at, end - at);
  const bool isFirst = at == 0 || text[at - 1] == '\n';
  at = end - 1;
  if (isFirst && text.substr(end).starts_with(" =")) {
    defined = aliases.insert_or_assign(name, 0).first;
    definedAt = depth;
    signs = 0;
    return true;
  }
  auto meaning = aliases.find(name);
  return meaning == aliases.end() || reach(depth + meaning->second);
}

bool Nesting::step(size_t &at) {
  switch (const char c = text[at]) {
  case '"': // to its end, if that is on the line
    for (size_t end = at + 1; end < text.size() && text[end] != '\n'; ++end) {
      if (text[end] == '"') {
        at = end;
        break;
      }
      end += text[end] == '\\';
    }
    return true;
  case '/':
    if (at + 1 < text.size() && text[at + 1] == '/')
      at = std::min(text.find('\n', at), text.size()) - 1;
    return true;
  case '{':
  case '(':
  case '[':
  case '<':
    return open(c);
  case '}':
    close('{');
    return true;
  case ')':
    close('(');
    return true;
  case ']':
    close('[');
    return true;
  case '>':
    if (at == 0 || text[at - 1] != '-') // an arrow
      close('<');
    return true;
  case '+':
  case '-':
  case '*':
    return sign();
  case 'm':
    return at == 0 || !isWord(at, "mod ") || sign();
  case 'f':
    return at == 0 || !isWord(at, "floordiv ") || sign();
  case 'c':
    return at == 0 || !isWord(at, "ceildiv ") || sign();
  case '%': // an operation: no alias's meaning has one
    defined = aliases.end();
    signs = 0;
    return true;
  case '@':
  case ',':
  case '=':
    signs = 0;
    return true;
  case '#':
  case '!':
    return alias(at);
  default:
    return true;
  }
}

/// No text has them, and a terminal may obey them.
bool isControl(char c) {
  return (c >= 0 && c < ' ' && (c < '\t' || c > '\r')) || c == '\x7f';
}

/// ONNX's ModelProto: its first field is the version of its form, and the next
/// one of those that exporters write after it.
bool isOnnx(std::string_view text) {
  constexpr std::string_view next = "\x12\x1a\x22\x28\x32\x3a\x42";
  return text.size() > 2 && text[0] == 8 && text[1] > 0 && text[1] < 32 &&
         next.find(text[2]) != std::string_view::npos;
}

} // namespace

Result<void> checkProgramText(std::string_view text, std::string_view name) {
  if (isOnnx(text))
    return fail(
        ErrorKind::Unsupported,
        fmt::format("'{}' is an ONNX model, which is not read: give the "
                    "PyTorch module as torch.export.save writes it, or "
                    "the model lowered to linalg by torch-mlir "
                    "(docs/from-pytorch.md)",
                    name));
  for (const Magic &magic : magics)
    if (text.starts_with(magic.bytes))
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is {}, not a program's text: {}", name,
                              magic.what, magic.remedy));
  const std::string_view first =
      text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const Language &language : languages)
    if (first.starts_with(language.begin) || name.ends_with(language.ending))
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is {}, not MLIR: {}", name, language.what,
                              language.remedy));
  const auto control = std::find_if(text.begin(), text.end(), isControl);
  if (control != text.end())
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a program's text: {} holds the byte "
                            "0x{:02x}",
                            name, placeIn(text, size_t(control - text.begin())),
                            unsigned(*control)));
  Nesting nesting(text);
  for (size_t at = 0; at < text.size(); ++at)
    if (!nesting.step(at))
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is nested too deep at {}: at most {} "
                              "brackets may be open, and an expression have {} "
                              "operators",
                              name, placeIn(text, at), mostNesting, mostSigns));
  return {};
}

} // namespace mgpu::planner
