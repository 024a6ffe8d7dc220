// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Variants.h"

#include "support/Spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mgpu::pipeline {

std::string needsOf(const VariantFacts &facts) {
  if (*facts.library)
    return facts.library;
  return *facts.onlyArch ? facts.onlyArch
                         : fmt::format("sm_{}", facts.leastArch);
}

std::vector<std::string> variantNames() {
  std::vector<std::string> names;
  for (const VariantFacts &each : variantTable)
    names.push_back(each.name);
  return names;
}

Result<Variant> variantNamed(std::string_view name) {
  for (const VariantFacts &each : variantTable)
    if (name == each.name)
      return each.variant;
  return fail(ErrorKind::Usage, fmt::format("'{}' is none of {}{}", name,
                                            fmt::join(variantNames(), ", "),
                                            didYouMean(name, variantNames())));
}

bool isDefault(DefaultRule rule, const Evidence &evidence) {
  const bool passed = evidence.verdict == Evidence::Verdict::Passed;
  switch (rule) {
  case DefaultRule::WherePassed:
    return passed;
  case DefaultRule::WhereNotSlower:
    return passed && evidence.withoutUs > 0 &&
           evidence.us <= evidence.withoutUs;
  case DefaultRule::WhereThere:
    break;
  }
  return evidence.verdict != Evidence::Verdict::Failed;
}

Variants::Variants() {
  for (const VariantFacts &each : variantTable)
    byDefault[size_t(each.variant)] = isDefault(each.rule, {});
}

bool Variants::isOpen() const {
  return std::ranges::all_of(words, [](Word w) { return w == Word::Auto; });
}

Result<void> Variants::take(std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  MGPU_TRY_ASSIGN(const Variant variant, variantNamed(word.substr(0, equals)));
  const std::string_view value = word.substr(equals);
  if (value.empty() || value == "=on")
    words[size_t(variant)] = Word::On;
  else if (value == "=off")
    words[size_t(variant)] = Word::Off;
  else if (value == "=auto")
    words[size_t(variant)] = Word::Auto;
  else
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is none of {}=on, off and auto", word,
                            factsOf(variant).name));
  return {};
}

std::vector<Variant> Variants::productForms() const {
  std::vector<Variant> forms;
  for (Word word : {Word::On, Word::Auto})
    // A wish of the user's goes before what is open.
    if (word == Word::On || !isAsked(Variant::CublasLt))
      for (Variant each : {Variant::Wgmma, Variant::Mma})
        if (wordOf(each) == word && uses(each))
          forms.push_back(each);
  return forms;
}

std::string Variants::textKey() const {
  std::string text = "variants";
  for (const VariantFacts &each : variantTable)
    if (each.variant != Variant::Pdl) // which the texts have both ways
      text += fmt::format(" {}={}{}", each.name, uint8_t(wordOf(each.variant)),
                          uses(each.variant) ? "+" : "-");
  return text;
}

} // namespace mgpu::pipeline
