// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaHelpers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <vector>

namespace mgpu::kernels::cuda {

namespace {

/// Each before those that use it.
const std::vector<Helper> &helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> found;
    for (llvm::ArrayRef<Helper> table :
         {numberHelpers(), accessHelpers(), mathHelpers(), threadHelpers(),
          matrixHelpers()})
      found.insert(found.end(), table.begin(), table.end());
    return found;
  }();
  return all;
}

} // namespace

/// Adds what the text declares at its outermost level.
static void findDeclared(llvm::StringRef text, llvm::StringSet<> &names) {
  auto lastWord = [](llvm::StringRef before) {
    return before.rtrim().take_back(before.rtrim().size() -
                                    (before.rtrim().find_last_of(" *&") + 1));
  };
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.empty() || (!llvm::isAlpha(line[0]) && line[0] != '_'))
      continue; // a comment, a directive, or what is inside
    const size_t function = line.find("__forceinline__");
    const size_t type = line.find("struct ");
    if (function != line.npos)
      names.insert(lastWord(line.substr(0, line.find('(', function))));
    else if (type != line.npos)
      names.insert(lastWord(line.substr(0, line.find('{'))));
  }
}

const llvm::StringSet<> &helperNames() {
  static const llvm::StringSet<> names = [] {
    llvm::StringSet<> found;
    for (const Helper &helper : helpers())
      findDeclared(helper.text, found);
    return found;
  }();
  return names;
}

void Helpers::use(llvm::StringRef name) {
  for (size_t k = 0; k < helpers().size(); ++k) {
    if (name != helpers()[k].name)
      continue;
    if (used.insert(k).second)
      for (llvm::StringRef other : llvm::split(helpers()[k].uses, ' '))
        if (!other.empty())
          use(other);
    return;
  }
  llvm_unreachable("no such helper");
}

/// Whether only the form for several threads uses it. Text that is not compiled
/// costs nothing.
static bool isForParts(llvm::StringRef name) {
  return name == "partOf" || name == "pieces" || name == "loadParts" ||
         name == "streamParts" || name == "storeParts" ||
         name == "blockReduceParts" || name == "subgroupReduceParts";
}

std::string Helpers::text() const {
  std::string text;
  bool inParts = false;
  auto enter = [&](bool parts) {
    if (parts != inParts)
      text += parts ? "#if MGPU_VECTOR > 1\n" : "#endif\n";
    inParts = parts;
  };
  for (size_t k : used) {
    text += text.empty() ? "" : "\n";
    enter(isForParts(helpers()[k].name));
    text += helpers()[k].text;
  }
  enter(false);
  return text;
}

} // namespace mgpu::kernels::cuda
