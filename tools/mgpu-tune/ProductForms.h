// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_PRODUCTFORMS_H
#define MGPU_TOOLS_MGPU_TUNE_PRODUCTFORMS_H

// Which of mgpu's own forms of matrix products on tensor cores have run and
// passed on a card: by card, driver and version of mgpu, in the database. Where
// one has, it is the default of products of f16 and bf16 in cuBLASLt's place.

#include "db/TuningStore.h"
#include "tools/mgpu-tune/Options.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::tune {

/// A card as results on it are known.
struct CardIdentity {
  std::string name, arch; ///< "NVIDIA H100", "sm_90"
  std::string driver;     ///< "13.0"
};
/// The cards a target of `cuda` names, asked of the driver in a process of its
/// own, as this one may be to be forked.
Result<std::vector<CardIdentity>> cardsOfTarget(const std::string &target);
using IdentifyCards =
    std::function<Result<std::vector<CardIdentity>>(const std::string &)>;

/// The forms, as --tensor-cores names them, the best first.
inline constexpr const char *formsToTry[] = {"wgmma", "mma"};

/// Stores that the form gave the right bits on the card, in replays of which
/// the median took `medianUs`; or with `fault` that it did not, for good.
Result<void> recordForm(db::TuningStore &store, const CardIdentity &card,
                        const std::string &form, double medianUs,
                        const std::string &fault = "");

/// "passed:wgmma,mma", those of the forms that passed on all cards of
/// options.target; "" where none did, the target is no card, --tensor-cores or
/// --no-tuned was given, a plan is read from a file or written to one, or there
/// is no database.
std::string passedForms(const Options &options,
                        const IdentifyCards &identify = cardsOfTarget);
inline constexpr std::string_view byRecord = "passed:";
/// Whether it is what passedForms() gives, and no --tensor-cores.
inline bool isByRecord(const std::string &tensorCores) {
  return tensorCores.starts_with(byRecord);
}
/// Whether either is for `form`.
inline bool asksForForm(const std::string &tensorCores,
                        const std::string &form) {
  if (!isByRecord(tensorCores))
    return tensorCores == form;
  std::string list = "," + tensorCores.substr(byRecord.size()) + ",";
  return list.find("," + form + ",") != std::string::npos;
}

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_PRODUCTFORMS_H
