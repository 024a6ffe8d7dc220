// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_COMPILE_H
#define MGPU_PIPELINE_PJRT_COMPILE_H

// From a program, which need not be trusted, to a bundle: mgpu-tune makes it in
// a process of its own. Bundles are kept between processes.

#include "device/api/BlobCache.h"
#include "pipeline/pjrt/Client.h"
#include "pipeline/pjrt/CompileOptions.h"

#include <functional>
#include <memory>

namespace mgpu::pipeline::pjrt {

/// A folder for a while.
class TemporaryFolder {
public:
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder &&other) noexcept;
  ~TemporaryFolder();
  std::string file(std::string_view name) const {
    return path + "/" + std::string(name);
  }
  const std::string &folder() const { return path; }

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

/// Sets the bundle of the program, text or bytecode, and, where it did not come
/// from the cache, `keep`, to be called once it has opened. The error says
/// where it is wrong, what ended the compiler, or that it took too long.
PJRT_Error *compileProgram(std::string_view program,
                           const CompileOptions &compile,
                           const ClientOptions &client, device::Blob &bundle,
                           std::function<void()> &keep);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_COMPILE_H
