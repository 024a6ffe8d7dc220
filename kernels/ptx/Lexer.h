// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_LEXER_H
#define MGPU_KERNELS_PTX_LEXER_H

// The words of a PTX text (ISA 9.0, sections 4.1 to 4.5).

#include "support/Result.h"

#include <string_view>
#include <vector>

namespace mgpu::kernels::ptx {

struct Token {
  enum class Kind : uint8_t { Word, Number, Text, Mark, End };
  Kind kind = Kind::End;
  std::string_view text; ///< of a Text, without the quotes
  uint32_t line = 0;
  bool is(std::string_view other) const {
    return (kind == Kind::Mark || kind == Kind::Word) && text == other;
  }
};

/// A word may have dots and double colons in it: "ld.shared::cta.u32". The last
/// token is an End. Invalid for a letter that PTX does not have.
Result<std::vector<Token>> tokensOf(std::string_view text);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_LEXER_H
