// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/TuningProblem.h"

#include "support/Sha256.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace mgpu::db {
namespace {

/// Escapes what is not printable ASCII, the backslash and what is in `special`.
std::string escape(std::string_view text, std::string_view special) {
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x20 || c >= 0x7f) {
      out += fmt::format("\\x{:02x}", c);
      continue;
    }
    if (c == '\\' || special.find(char(c)) != std::string_view::npos)
      out += '\\';
    out += char(c);
  }
  return out;
}

/// Takes text up to an unescaped character of `ends` or the end off `rest`;
/// none where an escape is malformed.
std::optional<std::string> unescape(std::string_view &rest,
                                    std::string_view ends) {
  std::string out;
  while (!rest.empty() && ends.find(rest.front()) == std::string_view::npos) {
    char c = rest.front();
    rest.remove_prefix(1);
    if (c != '\\') {
      out += c;
      continue;
    }
    if (rest.empty())
      return std::nullopt;
    if (rest.front() != 'x') {
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    uint8_t code = 0;
    if (rest.size() < 3 ||
        std::from_chars(rest.data() + 1, rest.data() + 3, code, 16).ptr !=
            rest.data() + 3)
      return std::nullopt;
    out += char(code);
    rest.remove_prefix(3);
  }
  return out;
}

using Field = std::pair<const char *, std::string TuningProblem::*>;
constexpr std::array<Field, 7> fields{{
    {"program", &TuningProblem::program},
    {"shape", &TuningProblem::shape},
    {"device", &TuningProblem::device},
    {"architecture", &TuningProblem::architecture},
    {"driver", &TuningProblem::driver},
    {"environment", &TuningProblem::environment},
    {"policy", &TuningProblem::policy},
}};

} // namespace

std::string pairsText(const Pairs &pairs) {
  std::string out;
  for (const auto &[name, value] : pairs)
    out += (out.empty() ? "" : ",") + escape(name, ",=") + "=" +
           escape(value, ",=");
  return out;
}

Result<Pairs> parsePairs(std::string_view text) {
  Pairs pairs;
  std::string_view rest = text;
  auto wrong = [&] {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not of the form name=value,name=value "
                            "with ascending names",
                            text.substr(0, 200)));
  };
  while (!rest.empty()) {
    auto name = unescape(rest, ",=");
    if (!name || rest.empty() || rest.front() != '=')
      return wrong();
    rest.remove_prefix(1);
    auto value = unescape(rest, ",=");
    if (!value || !pairs.emplace(*name, *value).second)
      return wrong();
    if (!rest.empty() && (rest.front() != ',' || rest.size() == 1))
      return wrong();
    if (!rest.empty())
      rest.remove_prefix(1);
  }
  // One content must not have two texts.
  if (pairsText(pairs) != text)
    return wrong();
  return pairs;
}

std::string TuningProblem::text() const {
  std::string out;
  for (auto [name, member] : fields)
    out += fmt::format("{}={}\n", name, escape(this->*member, ""));
  return out;
}

Result<TuningProblem> TuningProblem::parse(std::string_view text) {
  TuningProblem problem;
  std::string_view rest = text;
  for (auto [name, member] : fields) {
    std::string head = fmt::format("{}=", name);
    auto value = std::optional<std::string>();
    if (rest.starts_with(head)) {
      rest.remove_prefix(head.size());
      value = unescape(rest, "\n");
    }
    if (!value || rest.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("the text of a problem lacks '{}=': it is not "
                              "what mgpu writes",
                              name));
    rest.remove_prefix(1);
    problem.*member = std::move(*value);
  }
  if (problem.text() != text)
    return fail(ErrorKind::Invalid,
                "the text of a problem is not in its canonical form");
  return problem;
}

std::string TuningProblem::key() const { return Sha256().add(text()).hex(); }

std::string TuningProblem::familyKey() const {
  return Sha256().addField(program).addField(architecture).hex();
}

std::string TuningProblem::settingKey() const {
  return Sha256().addField(driver).addField(environment).addField(policy).hex();
}

} // namespace mgpu::db
