// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaState's cuBLASLt and cuSPARSE, opened when first asked for.
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>
#include <utility>

namespace mgpu::device {

/// Opens a library when first asked for it, and makes its handle. The handle of
/// a library that is not there stays null, and the user is told what happens
/// then.
template <typename Open, typename Handle>
static Result<void> openOnce(CudaState &state, Open &opener,
                             std::unique_ptr<Handle> &handle,
                             std::string_view whatIsWithout) {
  Open open = std::exchange(opener, nullptr);
  if (!open)
    return {};
  MGPU_TRY(state.checkAlive());
  auto found = open();
  if (!found && found.error().kind == ErrorKind::Absent) {
    state.warnOnce(fmt::format("{} run in mgpu's own text: {}", whatIsWithout,
                               found.error().message));
    return {};
  }
  MGPU_TRY_ASSIGN(auto library, std::move(found));
  CudaState::Current current(state);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(handle, Handle::open(std::move(library), state.where()));
  return {};
}

Result<Products *> CudaState::products() {
  MGPU_TRY(openOnce(*this, openProducts, theProducts,
                    "matrix products that cuBLASLt computes where it is "
                    "there"));
  return theProducts.get();
}

Result<SparseProducts *> CudaState::sparseProducts() {
  MGPU_TRY(openOnce(*this, openSparse, theSparse,
                    "products that cuSPARSE computes where it is there"));
  return theSparse.get();
}

Result<std::optional<uint64_t>> CudaState::sparseBytes(const SparseCall &call,
                                                       std::string_view name) {
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  return theSparse->bufferBytes(call, name);
}

Result<bool> CudaState::prepareProduct(ProductCall &call,
                                       std::string_view name) {
  MGPU_TRY(checkAlive());
  {
    Current current(*this);
    MGPU_TRY(current.entered);
    MGPU_TRY_ASSIGN(bool isThere, theProducts->choose(call, name));
    if (!isThere)
      return false;
  }
  Current current(*this);
  MGPU_TRY(current.entered);
  CUdeviceptr scratch = 0;
  const std::string what = fmt::format("for '{}' {}", name, where());
  MGPU_TRY(check(api->cuMemAlloc(&scratch, extentOfSums(call.product)),
                 "cuMemAlloc", what));
  Result<void> done = theProducts->issue(
      call, reinterpret_cast<std::byte *>(uintptr_t(scratch)), stream, name);
  if (done)
    done = wait(stream, "a first matrix product");
  if (!isLost())
    api->cuMemFree(scratch);
  MGPU_TRY(done);
  return true;
}

} // namespace mgpu::device
