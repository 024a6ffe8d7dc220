// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeTarget.h"
#include "RawDriver.h"
#include "Twins.h"

namespace mgpu::fake {

Result<std::unique_ptr<device::Driver>> openCudaTwin(uint32_t numDevices,
                                                     uint64_t seed) {
  freshMachine(seed);
  return openFake(fakeOptions(numDevices));
}

bool areCasesFew() { return false; }

std::string complaints(bool isClosed) {
  const FakeCuda &fake = FakeCuda::instance();
  if (!fake.violations.empty())
    return fake.violations.front();
  if (isClosed && !fake.leaks().empty())
    return "there are left: " + fake.leaks().front();
  return "";
}

std::shared_ptr<const device::CudaApi> rawDriver() {
  FakeCuda &fake = freshMachine();
  fake.kernels["nothing"] = {
      [](void **, const unsigned *, const unsigned *) {}, {8}, 1024};
  auto api = std::make_shared<device::CudaApi>(*FakeCuda::api());
  return device::initializeCuda(*api) ? api : nullptr;
}

bool mayDisagree() { return false; }

std::vector<std::byte> rawCubin() { return fakeCubin({"nothing"}); }

} // namespace mgpu::fake
