// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_LSP_CHECKRUN_H
#define MGPU_TOOLS_LSP_CHECKRUN_H

// `mgpu-tune check --json` of a text that an editor holds, in a process of its
// own: a program that is being written may be anything.

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <sys/types.h>

namespace mgpu::tools::lsp {

class CheckRun {
public:
  /// Starts mgpu-tune, the one beside this program or that of PATH, in the
  /// folder of `uri`. None where it cannot be started.
  static std::optional<CheckRun> start(const std::string &uri,
                                       const std::string &text);
  CheckRun(CheckRun &&other) noexcept;
  CheckRun &operator=(CheckRun &&) = delete;
  ~CheckRun(); ///< ends it

  int fd() const { return output; } ///< readable while it writes
  /// Reads what is there, or waits for some. False when it has ended.
  bool fill();
  /// The diagnostics it found in `text`, in the protocol's form.
  nlohmann::json diagnostics() const;

private:
  CheckRun(std::string uri, std::string text)
      : uri(std::move(uri)), text(std::move(text)) {}

  std::string uri, text, said;
  pid_t child = -1;
  int output = -1;
};

/// The options of `check` that a program's comments give: those of all lines
/// "// mgpu-tune: --arg a=2".
std::vector<std::string> optionsIn(const std::string &text);

} // namespace mgpu::tools::lsp

#endif // MGPU_TOOLS_LSP_CHECKRUN_H
