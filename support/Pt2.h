// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_PT2_H
#define MGPU_SUPPORT_PT2_H

// The files of torch.export.save ("PT2 archive", torch 2.8 or newer): a zip of
// a graph as JSON and of raw weights. Nothing is unpickled: what only a pickle
// has is refused.

#include "support/Array.h"
#include "support/Zip.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace mgpu {

/// The element type that PyTorch's serialisation numbers so.
std::optional<ElementType> torchElementType(int64_t number);

/// Row-major, as Array is; the bytes are the mapped file's where they lie there
/// so.
struct Pt2Tensor {
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape;
  HeldBytes data;
};

class Pt2Archive {
public:
  /// Unsupported for archives of AOTInductor and of older layouts, and for
  /// big-endian ones.
  static Result<Pt2Archive> open(const std::string &path);

  /// The graph: the one file in `models`.
  Result<std::string> model() const;
  /// Whether there is a weight or constant of that name.
  Result<bool> has(const std::string &name);
  /// A weight or constant by its name in the module: weights may share a
  /// payload by strides and offsets.
  Result<Pt2Tensor> tensor(const std::string &name);
  const std::shared_ptr<const MappedFile> &mapped() const {
    return zip.mapped();
  }

private:
  Result<const nlohmann::json *> config(const char *kind);
  /// Where a tensor is: its folder and what the archive says of it.
  Result<std::pair<const char *, const nlohmann::json *>>
  find(const std::string &name);
  Result<Pt2Tensor> strided(const std::string &name,
                            const nlohmann::json &about,
                            HeldBytes payload) const;
  tl::unexpected<Error> broken(const std::string &what) const;

  ZipFile zip;
  std::string root; ///< with its slash
  /// The tables that were read.
  std::map<std::string, std::shared_ptr<const nlohmann::json>> configs;
};

/// The tensor `name` of the archive `path`.
Result<Array> readPt2Tensor(const std::string &path, const std::string &name);

} // namespace mgpu

#endif // MGPU_SUPPORT_PT2_H
