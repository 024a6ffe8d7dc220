// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/ProductPolicy.h"

namespace mgpu::pipeline {

const char *formName(TensorForm form) {
  return form == TensorForm::Wgmma ? "wgmma" : "mma";
}

std::optional<TensorForm> formNamed(std::string_view name) {
  for (TensorForm form : tensorForms)
    if (name == formName(form))
      return form;
  return std::nullopt;
}

std::string ProductPolicy::text() const {
  switch (choice) {
  case Choice::Form:
    return formName(form);
  case Choice::Library:
    return "cublaslt";
  case Choice::Threads:
    return "none";
  case Choice::Open:
    break;
  }
  std::string names;
  for (TensorForm each : passed)
    names += (names.empty() ? "" : ",") + std::string(formName(each));
  return names.empty() ? names : "passed " + names;
}

std::optional<ProductPolicy> productPolicy(std::string_view word) {
  ProductPolicy policy;
  if (auto form = formNamed(word)) {
    policy.choice = ProductPolicy::Choice::Form;
    policy.form = *form;
  } else if (word == "cublaslt") {
    policy.choice = ProductPolicy::Choice::Library;
  } else if (word == "none") {
    policy.choice = ProductPolicy::Choice::Threads;
  } else {
    return std::nullopt;
  }
  return policy;
}

} // namespace mgpu::pipeline
