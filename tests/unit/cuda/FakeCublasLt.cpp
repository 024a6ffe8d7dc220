// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeCublasLt.h"

#include "FakeLock.h"
#include "FakeNodes.h"

#include "support/Float.h"

#include <cstring>

namespace mgpu::fake {

using namespace device;

static std::unique_ptr<FakeCublasLt> theCublasLt;

FakeCublasLt &FakeCublasLt::reset() {
  theCublasLt = std::make_unique<FakeCublasLt>();
  return *theCublasLt;
}

FakeCublasLt &FakeCublasLt::instance() {
  if (!theCublasLt)
    reset();
  return *theCublasLt;
}

std::vector<std::string> FakeCublasLt::leaks() const {
  std::vector<std::string> left;
  for (auto [count, what] : {std::pair(handles.size(), "handles"),
                             {operations.size(), "operations"},
                             {layouts.size(), "layouts"},
                             {preferences.size(), "preferences"}})
    if (count > 0)
      left.push_back(std::to_string(count) + " " + what);
  return left;
}

namespace {

void violation(const std::string &text) {
  FakeCuda::instance().violations.push_back(text);
}

CublasStatus enter(const char *name) {
  FakeCuda &fake = FakeCuda::instance();
  fake.called.push_back(name);
  if (++fake.calls != fake.failAt)
    return CublasStatus::Success;
  fake.failedCall = name;
  return FakeCublasLt::instance().failCode;
}

#define MGPU_FAKE_LT_ENTER(name)                                               \
  FakeCublasLt &lt = FakeCublasLt::instance();                                 \
  if (CublasStatus status = enter(name); status != CublasStatus::Success)      \
    return status;

uint32_t bytesOf(CublasType type) {
  return type == CublasType::F64 ? 8 : type == CublasType::F32 ? 4 : 2;
}

double read(CublasType type, const std::byte *at) {
  uint16_t half;
  float single;
  double wide;
  switch (type) {
  case CublasType::F16:
    std::memcpy(&half, at, 2);
    return fromF16(half);
  case CublasType::Bf16:
    std::memcpy(&half, at, 2);
    return fromBf16(half);
  case CublasType::F32:
    std::memcpy(&single, at, 4);
    return double(single);
  default:
    std::memcpy(&wide, at, 8);
    return wide;
  }
}

void write(CublasType type, std::byte *at, double value) {
  auto single = float(value);
  uint16_t half = type == CublasType::F16 ? toF16(value) : toBf16(value);
  const void *from = type == CublasType::F64   ? static_cast<void *>(&value)
                     : type == CublasType::F32 ? static_cast<void *>(&single)
                                               : &half;
  std::memcpy(at, from, bytesOf(type));
}

CublasStatus create(CublasLtHandle *handle) {
  MGPU_FAKE_LT_ENTER("cublasLtCreate");
  Context *context = FakeCuda::instance().current();
  if (!context)
    return CublasStatus::NotInitialized;
  *handle = reinterpret_cast<CublasLtHandle>(lt.handles.add({context}));
  return CublasStatus::Success;
}

CublasStatus destroy(CublasLtHandle handle) {
  enter("cublasLtDestroy");
  FakeCublasLt &lt = FakeCublasLt::instance();
  if (FakeCuda::instance().execs.size() > 0)
    violation("cublasLtDestroy before a graph that holds its calls");
  return lt.handles.remove(handle) ? CublasStatus::Success
                                   : CublasStatus::NotInitialized;
}

CublasStatus describe(CublasLtOperation *operation, CublasCompute compute,
                      CublasType scale) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmulDescCreate");
  *operation =
      reinterpret_cast<CublasLtOperation>(lt.operations.add({compute, scale}));
  return CublasStatus::Success;
}

CublasStatus setOperation(CublasLtOperation operation,
                          CublasLtOperationAttribute attribute,
                          const void *value, size_t bytes) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmulDescSetAttribute");
  FakeLtOperation *object = lt.operations.find(operation);
  if (!object || !value || bytes != 4 ||
      attribute != CublasLtOperationAttribute::TransposeA)
    return CublasStatus::InvalidValue;
  std::memcpy(&object->transposeA, value, bytes);
  return CublasStatus::Success;
}

CublasStatus destroyOperation(CublasLtOperation operation) {
  enter("cublasLtMatmulDescDestroy");
  if (!FakeCublasLt::instance().operations.remove(operation))
    violation("an operation is destroyed twice");
  return CublasStatus::Success;
}

CublasStatus makeLayout(CublasLtLayout *layout, CublasType type, uint64_t rows,
                        uint64_t columns, int64_t leading) {
  MGPU_FAKE_LT_ENTER("cublasLtMatrixLayoutCreate");
  // 1142: large enough that columns do not overlap.
  if (leading < int64_t(rows))
    return CublasStatus::InvalidValue;
  *layout = reinterpret_cast<CublasLtLayout>(
      lt.layouts.add({type, rows, columns, leading}));
  return CublasStatus::Success;
}

CublasStatus setLayout(CublasLtLayout layout, CublasLtLayoutAttribute attribute,
                       const void *value, size_t bytes) {
  MGPU_FAKE_LT_ENTER("cublasLtMatrixLayoutSetAttribute");
  FakeLtLayout *object = lt.layouts.find(layout);
  // 1232: invalid unless the size is that of the attribute.
  const bool isCount = attribute == CublasLtLayoutAttribute::BatchCount;
  if (!object || !value || bytes != (isCount ? 4 : 8))
    return CublasStatus::InvalidValue;
  std::memcpy(isCount ? static_cast<void *>(&object->batch) : &object->apart,
              value, bytes);
  return CublasStatus::Success;
}

CublasStatus destroyLayout(CublasLtLayout layout) {
  enter("cublasLtMatrixLayoutDestroy");
  if (!FakeCublasLt::instance().layouts.remove(layout))
    violation("a layout is destroyed twice");
  return CublasStatus::Success;
}

CublasStatus makePreference(CublasLtPreference *preference) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmulPreferenceCreate");
  *preference = reinterpret_cast<CublasLtPreference>(lt.preferences.add({}));
  return CublasStatus::Success;
}

CublasStatus setPreference(CublasLtPreference preference,
                           CublasLtPreferenceAttribute attribute,
                           const void *value, size_t bytes) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmulPreferenceSetAttribute");
  FakeLtPreference *object = lt.preferences.find(preference);
  const bool isBytes =
      attribute == CublasLtPreferenceAttribute::MaxWorkspaceBytes;
  if (!object || !value || bytes != (isBytes ? 8 : 4))
    return CublasStatus::InvalidValue;
  std::memcpy(isBytes ? static_cast<void *>(&object->workspaceBytes)
                      : &object->alignment[uint32_t(attribute) - 5],
              value, bytes);
  return CublasStatus::Success;
}

CublasStatus destroyPreference(CublasLtPreference preference) {
  enter("cublasLtMatmulPreferenceDestroy");
  if (!FakeCublasLt::instance().preferences.remove(preference))
    violation("a preference is destroyed twice");
  return CublasStatus::Success;
}

/// What an algorithm was chosen for: it is for nothing else.
uint64_t hashOf(const FakeLtOperation &operation,
                std::initializer_list<const FakeLtLayout *> layouts) {
  std::string text = std::to_string(uint32_t(operation.compute)) + "," +
                     std::to_string(operation.transposeA);
  for (const FakeLtLayout *each : layouts)
    for (int64_t figure :
         {int64_t(each->type), int64_t(each->rows), int64_t(each->columns),
          each->leading, int64_t(each->batch), each->apart})
      text += "," + std::to_string(figure);
  return std::hash<std::string>()(text);
}

/// Whether the shapes are a product of the types the library has.
bool isProduct(const FakeLtOperation &operation, const FakeLtLayout &a,
               const FakeLtLayout &b, const FakeLtLayout &c) {
  bool isNarrow = bytesOf(a.type) == 2;
  bool isWide = a.type == CublasType::F64;
  const bool isTurned = operation.transposeA == 1;
  return (isTurned ? a.columns : a.rows) == c.rows && b.columns == c.columns &&
         (isTurned ? a.rows : a.columns) == b.rows && a.batch == c.batch &&
         b.batch == c.batch && a.type == b.type &&
         (c.type == a.type || (isNarrow && c.type == CublasType::F32)) &&
         operation.compute ==
             (isWide ? CublasCompute::F64 : CublasCompute::F32) &&
         operation.scale == (isWide ? CublasType::F64 : CublasType::F32);
}

CublasStatus heuristic(CublasLtHandle handle, CublasLtOperation operation,
                       CublasLtLayout a, CublasLtLayout b, CublasLtLayout c,
                       CublasLtLayout d, CublasLtPreference preference,
                       int wanted, CublasLtHeuristic *results, int *found) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmulAlgoGetHeuristic");
  auto *with = lt.operations.find(operation);
  auto *first = lt.layouts.find(a), *second = lt.layouts.find(b),
       *third = lt.layouts.find(c), *fourth = lt.layouts.find(d);
  auto *wish = lt.preferences.find(preference);
  if (!lt.handles.find(handle) || !with || !first || !second || !third ||
      !fourth || !wish || wanted < 1)
    return CublasStatus::InvalidValue;
  *found = 0;
  // 2084: without a preference for it there is no workspace.
  if (!lt.hasAlgorithm || !isProduct(*with, *first, *second, *fourth) ||
      wish->workspaceBytes < lt.workspaceBytes)
    return CublasStatus::NotSupported;
  // 2159: "ordered in increasing estimated compute time".
  *found = std::min(wanted, lt.numAlgorithms);
  for (int place = 0; place < *found; ++place) {
    CublasLtHeuristic &result = results[place];
    result = {};
    result.algorithm.data[0] = hashOf(*with, {first, second, third, fourth});
    for (unsigned k = 0; k < 4; ++k)
      result.algorithm.data[1 + k] = wish->alignment[k];
    result.algorithm.data[5] = uint64_t(place);
    result.workspaceBytes = lt.workspaceBytes;
  }
  return CublasStatus::Success;
}

/// A call, with copies of all that it was given.
class Product final : public Operation {
public:
  FakeLtLayout a, b, c;
  bool isTurned;
  const std::byte *atA, *atB;
  std::byte *atC, *workspace;
  uint64_t workspaceBytes;
  double alpha, beta;

  bool step() override {
    // It may do with its workspace what it likes.
    if (workspace)
      std::memset(workspace, 0xab, workspaceBytes);
    for (int32_t z = 0; z < c.batch; ++z)
      for (uint64_t column = 0; column < c.columns; ++column)
        for (uint64_t row = 0; row < c.rows; ++row) {
          double sum = 0;
          for (uint64_t k = 0; k < b.rows; ++k)
            sum += read(a.type, isTurned ? element(atA, a, z, k, row)
                                         : element(atA, a, z, row, k)) *
                   read(b.type, element(atB, b, z, k, column));
          auto *to = const_cast<std::byte *>(element(atC, c, z, row, column));
          // cuBLAS's guide: "if beta == 0, C does not have to be a valid
          // input".
          write(c.type, to,
                alpha * sum + (beta == 0 ? 0 : beta * read(c.type, to)));
        }
    ++FakeCublasLt::instance().products;
    return true;
  }

  static const std::byte *element(const std::byte *base,
                                  const FakeLtLayout &layout, int32_t z,
                                  uint64_t row, uint64_t column) {
    return base + (z * layout.apart + int64_t(row) +
                   int64_t(column) * layout.leading) *
                      int64_t(bytesOf(layout.type));
  }
  static uint64_t extent(const FakeLtLayout &layout) {
    return uint64_t((layout.batch - 1) * layout.apart +
                    int64_t(layout.columns - 1) * layout.leading +
                    int64_t(layout.rows)) *
           bytesOf(layout.type);
  }
};

CublasStatus matmul(CublasLtHandle handle, CublasLtOperation operation,
                    const void *alpha, const void *a, CublasLtLayout aLayout,
                    const void *b, CublasLtLayout bLayout, const void *beta,
                    const void *c, CublasLtLayout cLayout, void *d,
                    CublasLtLayout dLayout, const CublasLtAlgorithm *algorithm,
                    void *workspace, size_t workspaceBytes, CUstream stream) {
  MGPU_FAKE_LT_ENTER("cublasLtMatmul");
  FakeCuda &fake = FakeCuda::instance();
  FakeLtHandle *context = lt.handles.find(handle);
  auto *with = lt.operations.find(operation);
  auto *first = lt.layouts.find(aLayout), *second = lt.layouts.find(bLayout),
       *third = lt.layouts.find(cLayout), *fourth = lt.layouts.find(dLayout);
  Stream *on = fake.streams.find(stream);
  // 1000: not initialised; 1001: in conflict or impossible.
  if (!context)
    return CublasStatus::NotInitialized;
  if (!with || !first || !second || !third || !fourth || !on || !algorithm ||
      !isProduct(*with, *first, *second, *fourth))
    return CublasStatus::InvalidValue;
  if (on->context != context->context || fake.current() != context->context)
    violation("cublasLtMatmul with another GPU current");
  if (algorithm->data[0] != hashOf(*with, {first, second, third, fourth}))
    return CublasStatus::NotSupported;
  const void *ends[] = {a, b, c, d};
  const FakeLtLayout *layouts[] = {first, second, third, fourth};
  for (unsigned k = 0; k < 4; ++k) {
    // 2101: an algorithm works with what is as aligned as was promised.
    if (uintptr_t(ends[k]) % algorithm->data[1 + k] != 0)
      violation("a matrix is less aligned than the algorithm was chosen for");
    if (!fake.isDeviceRange(uint64_t(uintptr_t(ends[k])),
                            Product::extent(*layouts[k]))) {
      violation("cublasLtMatmul on what is not memory of the GPU");
      return CublasStatus::InvalidValue;
    }
  }
  // 1002: less workspace than the algorithm needs.
  if (workspaceBytes < lt.workspaceBytes)
    return CublasStatus::InvalidValue;
  if (workspaceBytes > 0 &&
      (uintptr_t(workspace) % 16 != 0 ||
       !fake.isDeviceRange(uint64_t(uintptr_t(workspace)), workspaceBytes)))
    violation("a workspace that is not aligned memory of the GPU");
  Product product;
  product.a = *first;
  product.b = *second;
  product.c = *fourth;
  product.isTurned = with->transposeA == 1;
  product.atA = static_cast<const std::byte *>(a);
  product.atB = static_cast<const std::byte *>(b);
  product.atC = static_cast<std::byte *>(d);
  product.workspace = static_cast<std::byte *>(workspace);
  lt.workspace = workspace;
  lt.place = algorithm->data[5];
  product.workspaceBytes = workspaceBytes;
  auto scale = [&](const void *at) {
    return read(with->scale, static_cast<const std::byte *>(at));
  };
  product.alpha = scale(alpha);
  product.beta = scale(beta);
  if (c != d)
    violation("C and D apart are not what is tested here");
  std::string key = std::to_string(algorithm->data[0]) + " " +
                    std::to_string(algorithm->data[5]);
  auto start = [product]() -> std::unique_ptr<Operation> {
    return std::make_unique<Product>(product);
  };
  if (!on->capturing) {
    lt.loaded.insert(key);
    Exec::Step step{{}, {}};
    step.node.graph = nullptr;
    step.node.owner = context;
    step.node.start = start;
    fake.launch({step}, *on);
    return CublasStatus::Success;
  }
  // A kernel is loaded when it is first used, which a capture may not allow.
  if (!lt.loaded.count(key))
    violation("the first use of an algorithm was captured");
  ++lt.captured;
  // libcublasLt has the words "kind:
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION".
  captureKernel(fake, *on, context, start, true);
  if (lt.isLoose)
    on->capturing->nodes.back()->edgeData[0] = {
        CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, 0, {}};
  return CublasStatus::Success;
}

const char *statusString(CublasStatus status) {
  return status == CublasStatus::AllocFailed ? "the resource allocation failed"
                                             : "an internal operation failed";
}

size_t version() { return 130100; }

} // namespace

std::shared_ptr<const CublasLtApi> FakeCublasLt::api() {
  auto api = std::make_shared<CublasLtApi>();
  api->Create = create;
  api->Destroy = destroy;
  api->MatmulDescCreate = describe;
  api->MatmulDescSetAttribute = setOperation;
  api->MatmulDescDestroy = destroyOperation;
  api->MatrixLayoutCreate = makeLayout;
  api->MatrixLayoutSetAttribute = setLayout;
  api->MatrixLayoutDestroy = destroyLayout;
  api->MatmulPreferenceCreate = makePreference;
  api->MatmulPreferenceSetAttribute = setPreference;
  api->MatmulPreferenceDestroy = destroyPreference;
  api->MatmulAlgoGetHeuristic = heuristic;
  api->Matmul = matmul;
  MGPU_CUBLASLT_FUNCTIONS(MGPU_FAKE_LOCK_ENTRY)
  api->GetStatusString = statusString;
  api->GetVersion = version;
  return api;
}

} // namespace mgpu::fake
