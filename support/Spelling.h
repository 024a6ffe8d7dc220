// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SPELLING_H
#define MGPU_SUPPORT_SPELLING_H

// Tells names from other words, and guesses which one a user meant.

#include <span>
#include <string>
#include <string_view>

namespace mgpu {

/// Whether `text` may name a function or a macro of C: letters, digits and
/// underscores, and no digit first.
bool isIdentifier(std::string_view text);

/// Whether `name` is `wanted`, in which each `*` stands for any letters.
bool matchesPattern(std::string_view wanted, std::string_view name);

/// Insertions, deletions, replacements and swaps of neighbours that make one
/// word of the other.
size_t editDistance(std::string_view a, std::string_view b);

/// "; did you mean 'NAME'?" for the known word that is nearest to `word`, empty
/// where none is near: at most a third of its letters differ.
std::string didYouMean(std::string_view word,
                       std::span<const std::string> known);

} // namespace mgpu

#endif // MGPU_SUPPORT_SPELLING_H
