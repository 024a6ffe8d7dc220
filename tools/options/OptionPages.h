// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_OPTIONS_OPTIONPAGES_H
#define MGPU_TOOLS_OPTIONS_OPTIONPAGES_H

// The option table as a manual page and as completions for shells. The build
// writes them by `mgpu-tune options --as FORMAT` and installs them.

#include "tools/options/OptionTable.h"

namespace mgpu::tools {

using OptionTable = std::vector<CommandEntry>; ///< as optionTable() makes it

/// mgpu-tune(1), in the man macros of roff.
std::string manPage(const OptionTable &table);

std::string bashCompletion(const OptionTable &table);
std::string zshCompletion(const OptionTable &table);
std::string fishCompletion(const OptionTable &table);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_OPTIONS_OPTIONPAGES_H
