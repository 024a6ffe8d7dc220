// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_VARIANTS_H
#define MGPU_PIPELINE_PROGRAM_VARIANTS_H

// Variants of how a GPU's program is emitted and launched, beside its plain
// form: what each is, the user's word about it, and its default.

#include "support/Result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline {

/// In the order of the table below. The better form of matrix products is the
/// first.
enum class Variant : uint8_t { Wgmma, Mma, CublasLt, Cusparse, Pdl };

/// Decides whether a variant is on where the user leaves it open.
enum class DefaultRule : uint8_t {
  WherePassed,    ///< it gave the right bits on the GPU
  WhereNotSlower, ///< and took no longer than the same without it
  WhereThere,     ///< its library is there, and it gave no wrong bits
};

struct VariantFacts {
  Variant variant;
  const char *name;     ///< as --variant has it
  const char *meaning;  ///< one sentence
  uint32_t leastArch;   ///< the first architecture that has it; 0: any
  const char *onlyArch; ///< or the only one; else empty
  const char *library;  ///< that it needs; else empty
  DefaultRule rule;
  const char *record; ///< what the database calls it, which stays
};

inline constexpr VariantFacts variantTable[] = {
    {Variant::Wgmma, "wgmma",
     "matrix products of f16 and bf16 by mgpu's own text on tensor cores, by "
     "warpgroups",
     90, "sm_90a", "", DefaultRule::WherePassed, "product form wgmma"},
    {Variant::Mma, "mma",
     "matrix products of f16 and bf16 by mgpu's own text on tensor cores, by "
     "warps",
     80, "", "", DefaultRule::WherePassed, "product form mma"},
    {Variant::CublasLt, "cublaslt",
     "matrix products by cuBLASLt: all of them where it is on, those of f16 "
     "and bf16 by default",
     0, "", "libcublasLt", DefaultRule::WhereThere, "variant cublaslt"},
    {Variant::Cusparse, "cusparse", "products with sparse matrices by cuSPARSE",
     0, "", "libcusparse", DefaultRule::WhereThere, "variant cusparse"},
    {Variant::Pdl, "pdl",
     "a kernel may begin before the one kernel it follows has ended, and waits "
     "for it (programmatic dependent launch)",
     90, "", "", DefaultRule::WhereNotSlower, "variant pdl"},
};
inline constexpr size_t numVariants = std::size(variantTable);

static_assert([] {
  for (size_t k = 0; k < numVariants; ++k)
    if (size_t(variantTable[k].variant) != k)
      return false;
  return true;
}());

constexpr const VariantFacts &factsOf(Variant variant) {
  return variantTable[size_t(variant)];
}
/// "sm_90a", "sm_80" or "libcublasLt".
std::string needsOf(const VariantFacts &facts);
/// Usage for a name that none has.
Result<Variant> variantNamed(std::string_view name);
std::vector<std::string> variantNames();

/// The evidence for a variant on one GPU with its driver.
struct Evidence {
  enum class Verdict : uint8_t { NotRun, Passed, Failed };
  Verdict verdict = Verdict::NotRun;
  double us = 0;        ///< the median of replays with it; 0: not measured
  double withoutUs = 0; ///< of the same without it
  std::string fault;    ///< why it failed
};

/// Where all defaults are decided.
bool isDefault(DefaultRule rule, const Evidence &evidence);

/// Which variants a program uses.
struct Variants {
  enum class Word : uint8_t { Auto, On, Off };
  std::array<Word, numVariants> words = {};
  /// By variant, where its word is Auto: as isDefault() says of the target's
  /// GPUs (withEvidence() of VariantRecord.h), or of a GPU nobody knows.
  std::array<bool, numVariants> byDefault;

  Variants();
  Word wordOf(Variant of) const { return words[size_t(of)]; }
  bool isAsked(Variant of) const { return wordOf(of) == Word::On; }
  bool isOff(Variant of) const { return wordOf(of) == Word::Off; }
  bool uses(Variant of) const {
    return isAsked(of) || (wordOf(of) == Word::Auto && byDefault[size_t(of)]);
  }
  bool isOpen() const; ///< the user said nothing
  /// Takes one word of --variant: NAME, or NAME=on|off|auto. Usage for others.
  Result<void> take(std::string_view word);
  /// mgpu's own texts of f16 and bf16 products to try, the best first.
  std::vector<Variant> productForms() const;
  /// A key of all that decides kernels' texts: two that differ have others.
  std::string textKey() const;
};

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_VARIANTS_H
