// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PRODUCTPOLICY_H
#define MGPU_PIPELINE_PRODUCTPOLICY_H

// How GPUs compute matrix products: the user's word, and what has passed on
// the GPU where the user leaves it open.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline {

/// mgpu's own forms of matrix products of f16 and bf16 on tensor cores.
enum class TensorForm : uint8_t { Wgmma, Mma };

/// All of them, the best first.
inline constexpr TensorForm tensorForms[] = {TensorForm::Wgmma,
                                             TensorForm::Mma};

/// "wgmma" or "mma", as --tensor-cores and `db form` spell it.
const char *formName(TensorForm form);
std::optional<TensorForm> formNamed(std::string_view name);

struct ProductPolicy {
  enum class Choice : uint8_t {
    Open,    ///< f16 and bf16 by the best of `passed`, else by cuBLASLt
    Form,    ///< f16 and bf16 by `form`
    Library, ///< all by cuBLASLt
    Threads, ///< none by tensor cores or a library
  };
  Choice choice = Choice::Open;
  TensorForm form = TensorForm::Mma; ///< what Choice::Form asks for
  /// The forms that have passed on every GPU of the target, the best first.
  /// Empty unless the choice is open (passedForms() of ProductForms.h).
  std::vector<TensorForm> passed;

  bool isOpen() const { return choice == Choice::Open; }
  bool isPassed(TensorForm of) const {
    return std::ranges::find(passed, of) != passed.end();
  }
  bool uses(TensorForm of) const {
    return choice == Choice::Form ? form == of : isPassed(of);
  }
  /// The words that differ where two policies do, for keys and messages: the
  /// names of the forms that have passed, else a value of --tensor-cores.
  std::string text() const;
};

/// The policy that a value of --tensor-cores asks for; nullopt for a word that
/// is none of "mma", "wgmma", "cublaslt" and "none".
std::optional<ProductPolicy> productPolicy(std::string_view word);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PRODUCTPOLICY_H
