// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/PathMap.h"

#include <cctype>

namespace mgpu::pipeline {

PathMap::PathMap(const std::string &programFile,
                 const std::map<std::string, std::string> &prefixes)
    : prefixes(prefixes) {
  // emplace: what the user says of the folder holds.
  const auto slash = programFile.rfind('/');
  if (slash != std::string::npos)
    this->prefixes.emplace(programFile.substr(0, slash), "");
}

std::string PathMap::operator()(const std::string &path) const {
  const std::pair<const std::string, std::string> *best = nullptr;
  for (const auto &each : prefixes) {
    const std::string &prefix = each.first;
    const bool isWithin = path.starts_with(prefix) &&
                          (path.size() == prefix.size() ||
                           prefix.ends_with('/') || path[prefix.size()] == '/');
    if (isWithin && (!best || prefix.size() > best->first.size()))
      best = &each;
  }
  if (!best)
    return path;
  std::string rest = path.substr(best->first.size());
  if (best->second.empty() && rest.starts_with('/'))
    rest.erase(0, 1);
  return best->second + rest;
}

/// Whether the string in `text` between the quotes at `open` and `close` is the
/// path of a location of MLIR or of a #line of C.
static bool isPath(const std::string &text, size_t open, size_t close) {
  if (close + 2 < text.size() && text[close + 1] == ':' &&
      std::isdigit(static_cast<unsigned char>(text[close + 2])))
    return true;
  const size_t line = text.rfind('\n', open) + 1;
  return text.compare(line, 6, "#line ") == 0;
}

std::string PathMap::inText(const std::string &text) const {
  std::string mapped;
  size_t done = 0;
  for (size_t open = text.find('"'); open != std::string::npos;) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string::npos)
      break;
    if (isPath(text, open, close)) {
      mapped.append(text, done, open + 1 - done);
      mapped += (*this)(text.substr(open + 1, close - open - 1));
      done = close;
    }
    open = text.find('"', close + 1);
  }
  return mapped.append(text, done);
}

void PathMap::apply(planner::Dag &dag) const {
  // A location may be several, "a.py:3 + b.py:5".
  auto map = [&](std::string &location) {
    std::string mapped;
    for (size_t at = 0; at < location.size();) {
      const size_t plus = std::min(location.find(" + ", at), location.size());
      mapped +=
          (at == 0 ? "" : " + ") + (*this)(location.substr(at, plus - at));
      at = plus + 3;
    }
    location = std::move(mapped);
  };
  for (planner::DagNode &node : dag.nodes)
    map(node.location);
  for (planner::KernelSpec &kernel : dag.kernels) {
    map(kernel.location);
    if (auto *mlir = std::get_if<planner::MlirKernel>(&kernel.source))
      mlir->text = inText(mlir->text);
    if (auto *cuda = std::get_if<planner::CudaFile>(&kernel.source)) {
      cuda->file = (*this)(cuda->file);
      cuda->reference = inText(cuda->reference);
    }
  }
  map(dag.loop.location);
}

} // namespace mgpu::pipeline
