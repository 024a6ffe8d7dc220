// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeCusparse.h"

#include "FakeLock.h"
#include "FakeNodes.h"

#include "support/Float.h"

#include <cstring>

namespace mgpu::fake {

using namespace device;

/// Never destroyed: what ran is asked for when the process ends. Made at the
/// first call, as a library may begin with one.
static std::unique_ptr<FakeCusparse> &theCusparse() {
  static auto *the = new std::unique_ptr<FakeCusparse>;
  return *the;
}

FakeCusparse &FakeCusparse::reset() {
  theCusparse() = std::make_unique<FakeCusparse>();
  return *theCusparse();
}

FakeCusparse &FakeCusparse::instance() {
  if (!theCusparse())
    reset();
  return *theCusparse();
}

std::vector<std::string> FakeCusparse::leaks() const {
  std::vector<std::string> left;
  for (auto [count, what] : {std::pair(handles.size(), "handles"),
                             {matrices.size(), "sparse matrices"},
                             {dense.size(), "dense matrices"}})
    if (count > 0)
      left.push_back(std::to_string(count) + " " + what);
  return left;
}

/// Whose names are those of the other doubles, too.
namespace cusparse {
namespace {

void violation(const std::string &text) {
  FakeCuda::instance().violations.push_back(text);
}

CusparseStatus enter(const char *name) {
  FakeCuda &fake = FakeCuda::instance();
  fake.called.push_back(name);
  if (++fake.calls != fake.failAt)
    return CusparseStatus::Success;
  fake.failedCall = name;
  return FakeCusparse::instance().failCode;
}

#define MGPU_FAKE_SPARSE_ENTER(name)                                           \
  FakeCusparse &sparse = FakeCusparse::instance();                             \
  if (CusparseStatus status = enter(name); status != CusparseStatus::Success)  \
    return status;

int64_t bytesOf(CusparseType type) {
  return type == CusparseType::F64 ? 8 : type == CusparseType::F32 ? 4 : 2;
}

double read(CusparseType type, const std::byte *base, int64_t at) {
  base += at * bytesOf(type);
  uint16_t half;
  float single;
  double wide;
  switch (type) {
  case CusparseType::F16:
    std::memcpy(&half, base, 2);
    return fromF16(half);
  case CusparseType::Bf16:
    std::memcpy(&half, base, 2);
    return fromBf16(half);
  case CusparseType::F32:
    std::memcpy(&single, base, 4);
    return double(single);
  default:
    std::memcpy(&wide, base, 8);
    return wide;
  }
}

void write(CusparseType type, std::byte *base, int64_t at, double value) {
  auto single = float(value);
  uint16_t half = type == CusparseType::F16 ? toF16(value) : toBf16(value);
  const void *from = type == CusparseType::F64   ? static_cast<void *>(&value)
                     : type == CusparseType::F32 ? static_cast<void *>(&single)
                                                 : &half;
  std::memcpy(base + at * bytesOf(type), from, size_t(bytesOf(type)));
}

int64_t readIndex(CusparseIndex type, const std::byte *base, int64_t at) {
  int32_t narrow;
  int64_t wide;
  if (type == CusparseIndex::I64)
    return std::memcpy(&wide, base + at * 8, 8), wide;
  return std::memcpy(&narrow, base + at * 4, 4), int64_t(narrow);
}

CusparseStatus create(CusparseHandle *handle) {
  MGPU_FAKE_SPARSE_ENTER("cusparseCreate");
  Context *context = FakeCuda::instance().current();
  if (!context)
    return CusparseStatus::NotInitialized;
  *handle =
      reinterpret_cast<CusparseHandle>(sparse.handles.add({context, nullptr}));
  return CusparseStatus::Success;
}

CusparseStatus destroy(CusparseHandle handle) {
  enter("cusparseDestroy");
  if (FakeCuda::instance().execs.size() > 0)
    violation("cusparseDestroy before a graph that holds its calls");
  return FakeCusparse::instance().handles.remove(handle)
             ? CusparseStatus::Success
             : CusparseStatus::NotInitialized;
}

CusparseStatus setStream(CusparseHandle handle, CUstream stream) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSetStream");
  FakeSparseHandle *object = sparse.handles.find(handle);
  if (!object || !FakeCuda::instance().streams.find(stream))
    return CusparseStatus::InvalidValue;
  object->stream = stream;
  return CusparseStatus::Success;
}

CusparseStatus createCsr(CusparseMatrix *matrix, int64_t rows, int64_t columns,
                         int64_t entries, void *positions, void *indices,
                         void *values, CusparseIndex positionsType,
                         CusparseIndex indicesType, CusparseBase base,
                         CusparseType type) {
  MGPU_FAKE_SPARSE_ENTER("cusparseCreateCsr");
  if (rows < 0 || columns < 0 || entries < 0 || entries > rows * columns ||
      positionsType != indicesType || base != CusparseBase::Zero)
    return CusparseStatus::InvalidValue;
  *matrix = reinterpret_cast<CusparseMatrix>(sparse.matrices.add(
      {rows, columns, entries, static_cast<std::byte *>(positions),
       static_cast<std::byte *>(indices), static_cast<std::byte *>(values),
       positionsType, type}));
  return CusparseStatus::Success;
}

CusparseStatus destroyMatrix(const CusparseMatrixOpaque *matrix) {
  enter("cusparseDestroySpMat");
  if (!FakeCusparse::instance().matrices.remove(
          const_cast<CusparseMatrixOpaque *>(matrix)))
    violation("a sparse matrix is destroyed twice");
  return CusparseStatus::Success;
}

CusparseStatus createVector(CusparseVector *vector, int64_t size, void *values,
                            CusparseType type) {
  MGPU_FAKE_SPARSE_ENTER("cusparseCreateDnVec");
  *vector = reinterpret_cast<CusparseVector>(
      sparse.dense.add({size, 1, 1, static_cast<std::byte *>(values), type}));
  return CusparseStatus::Success;
}

CusparseStatus destroyVector(const CusparseVectorOpaque *vector) {
  enter("cusparseDestroyDnVec");
  if (!FakeCusparse::instance().dense.remove(
          const_cast<CusparseVectorOpaque *>(vector)))
    violation("a vector is destroyed twice");
  return CusparseStatus::Success;
}

CusparseStatus createDense(CusparseDense *matrix, int64_t rows, int64_t columns,
                           int64_t leading, void *values, CusparseType type,
                           CusparseOrder order) {
  MGPU_FAKE_SPARSE_ENTER("cusparseCreateDnMat");
  if (order != CusparseOrder::Row || leading < columns)
    return CusparseStatus::InvalidValue;
  *matrix = reinterpret_cast<CusparseDense>(sparse.dense.add(
      {rows, columns, leading, static_cast<std::byte *>(values), type}));
  return CusparseStatus::Success;
}

CusparseStatus destroyDense(const CusparseDenseOpaque *matrix) {
  enter("cusparseDestroyDnMat");
  if (!FakeCusparse::instance().dense.remove(
          const_cast<CusparseDenseOpaque *>(matrix)))
    violation("a dense matrix is destroyed twice");
  return CusparseStatus::Success;
}

/// A call, with copies of all that it was given. S * a += b, or S += a * b.
class Product final : public Operation {
public:
  FakeSparseMatrix s;
  FakeDenseMatrix a, b;
  bool isTurnedA = false, isTurnedB = false, isSampled = false;
  CusparseType compute = CusparseType::F32;
  std::byte *buffer = nullptr;
  uint64_t bufferBytes = 0;

  bool step() override {
    // It may do with its buffer what it likes.
    if (buffer)
      std::memset(buffer, 0xab, bufferBytes);
    for (int64_t row = 0; row < s.rows; ++row) {
      const int64_t begin = readIndex(s.index, s.positions, row),
                    end = readIndex(s.index, s.positions, row + 1);
      if (isSampled)
        for (int64_t at = begin; at < end; ++at)
          sample(row, at);
      else
        for (int64_t column = 0; column < b.columns; ++column)
          multiply(row, column, begin, end);
    }
    ++FakeCusparse::instance().products;
    return true;
  }

  bool fits() const {
    const int64_t rowsA = isTurnedA ? a.columns : a.rows,
                  columnsA = isTurnedA ? a.rows : a.columns,
                  rowsB = isTurnedB ? b.columns : b.rows,
                  columnsB = isTurnedB ? b.rows : b.columns;
    const bool isWide = s.type == CusparseType::F64;
    const bool areTypes =
        a.type == s.type &&
        (b.type == s.type || (!isSampled && b.type == CusparseType::F32)) &&
        compute == (isWide ? CusparseType::F64 : CusparseType::F32);
    return areTypes && (isSampled ? rowsA == s.rows && columnsA == rowsB &&
                                        columnsB == s.columns
                                  : rowsA == s.columns && rowsB == s.rows &&
                                        columnsA == columnsB);
  }

private:
  static double number(const FakeDenseMatrix &matrix, bool isTurned,
                       int64_t row, int64_t column) {
    if (isTurned)
      std::swap(row, column);
    return read(matrix.type, matrix.values, row * matrix.leading + column);
  }
  void multiply(int64_t row, int64_t column, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t at = begin; at < end; ++at)
      sum += read(s.type, s.values, at) *
             number(a, isTurnedA, readIndex(s.index, s.indices, at), column);
    const int64_t to = row * b.leading + column;
    write(b.type, b.values, to, sum + read(b.type, b.values, to));
  }
  void sample(int64_t row, int64_t at) {
    const int64_t column = readIndex(s.index, s.indices, at),
                  terms = isTurnedA ? a.rows : a.columns;
    double sum = read(s.type, s.values, at);
    for (int64_t k = 0; k < terms; ++k)
      sum += number(a, isTurnedA, row, k) * number(b, isTurnedB, k, column);
    write(s.type, s.values, at, sum);
  }
};

/// What both calls of a product are told.
struct Asked {
  CusparseHandle handle;
  const void *alpha, *beta;
  const CusparseMatrixOpaque *matrix;
  const void *a, *b;
  bool isTurnedA, isTurnedB, isSampled;
  CusparseType compute;
};

std::optional<Product> productOf(const Asked &asked) {
  FakeCusparse &sparse = FakeCusparse::instance();
  FakeSparseHandle *handle = sparse.handles.find(asked.handle);
  auto *s =
      sparse.matrices.find(const_cast<CusparseMatrixOpaque *>(asked.matrix));
  auto *a = sparse.dense.find(const_cast<void *>(asked.a)),
       *b = sparse.dense.find(const_cast<void *>(asked.b));
  if (!handle || !s || !a || !b)
    return std::nullopt;
  if (FakeCuda::instance().current() != handle->context)
    violation("a product of cuSPARSE with another GPU current");
  Product product;
  product.s = *s;
  product.a = *a;
  product.b = *b;
  product.isTurnedA = asked.isTurnedA;
  product.isTurnedB = asked.isTurnedB;
  product.isSampled = asked.isSampled;
  product.compute = asked.compute;
  if (!product.fits() ||
      read(asked.compute, static_cast<const std::byte *>(asked.alpha), 0) !=
          1 ||
      read(asked.compute, static_cast<const std::byte *>(asked.beta), 0) != 1)
    return std::nullopt;
  return product;
}

CusparseStatus sizeOf(const Asked &asked, size_t *bytes) {
  FakeCusparse &sparse = FakeCusparse::instance();
  if (!productOf(asked))
    return CusparseStatus::InvalidValue;
  if (!sparse.hasWay)
    return CusparseStatus::NotSupported;
  *bytes = sparse.bufferBytes;
  return CusparseStatus::Success;
}

CusparseStatus run(const Asked &asked, void *buffer) {
  FakeCusparse &sparse = FakeCusparse::instance();
  FakeCuda &fake = FakeCuda::instance();
  std::optional<Product> product = productOf(asked);
  if (!product)
    return CusparseStatus::InvalidValue;
  const FakeSparseHandle &handle = *sparse.handles.find(asked.handle);
  Stream *on = fake.streams.find(handle.stream);
  if (!on)
    return CusparseStatus::InvalidValue;
  product->buffer = static_cast<std::byte *>(buffer);
  product->bufferBytes = sparse.bufferBytes;
  const FakeSparseMatrix &s = product->s;
  auto isThere = [&](const std::byte *memory, int64_t bytes) {
    return bytes == 0 ||
           fake.isDeviceRange(uint64_t(uintptr_t(memory)), uint64_t(bytes));
  };
  const int64_t index = s.index == CusparseIndex::I64 ? 8 : 4;
  bool areThere = isThere(s.positions, (s.rows + 1) * index) &&
                  isThere(s.indices, s.entries * index) &&
                  isThere(s.values, s.entries * bytesOf(s.type)) &&
                  isThere(product->buffer, int64_t(sparse.bufferBytes));
  for (const FakeDenseMatrix *each : {&product->a, &product->b})
    areThere &=
        isThere(each->values, each->rows * each->leading * bytesOf(each->type));
  if (!areThere) {
    violation("cuSPARSE on what is not memory of the GPU");
    return CusparseStatus::InvalidValue;
  }
  auto start = [copy = *product]() -> std::unique_ptr<Operation> {
    return std::make_unique<Product>(copy);
  };
  if (!on->capturing) {
    violation("a product of cuSPARSE that is not captured");
    return CusparseStatus::InvalidValue;
  }
  ++sparse.captured;
  captureKernel(fake, *on, handle.context, start, false);
  return CusparseStatus::Success;
}

constexpr auto turned = CusparseOperation::Transpose;

CusparseStatus vectorSize(CusparseHandle handle, CusparseOperation operation,
                          const void *alpha, const CusparseMatrixOpaque *matrix,
                          const CusparseVectorOpaque *x, const void *beta,
                          CusparseVector y, CusparseType compute,
                          CusparseVectorWay, size_t *bytes) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSpMV_bufferSize");
  if (operation == turned)
    return CusparseStatus::NotSupported;
  (void)sparse;
  return sizeOf(
      {handle, alpha, beta, matrix, x, y, false, false, false, compute}, bytes);
}

CusparseStatus vectorProduct(CusparseHandle handle, CusparseOperation operation,
                             const void *alpha,
                             const CusparseMatrixOpaque *matrix,
                             const CusparseVectorOpaque *x, const void *beta,
                             CusparseVector y, CusparseType compute,
                             CusparseVectorWay, void *buffer) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSpMV");
  if (operation == turned)
    return CusparseStatus::NotSupported;
  (void)sparse;
  return run({handle, alpha, beta, matrix, x, y, false, false, false, compute},
             buffer);
}

CusparseStatus matrixSize(CusparseHandle handle, CusparseOperation operation,
                          CusparseOperation second, const void *alpha,
                          const CusparseMatrixOpaque *matrix,
                          const CusparseDenseOpaque *b, const void *beta,
                          CusparseDense c, CusparseType compute,
                          CusparseMatrixWay, size_t *bytes) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSpMM_bufferSize");
  if (operation == turned)
    return CusparseStatus::NotSupported;
  (void)sparse;
  return sizeOf({handle, alpha, beta, matrix, b, c, second == turned, false,
                 false, compute},
                bytes);
}

CusparseStatus matrixProduct(CusparseHandle handle, CusparseOperation operation,
                             CusparseOperation second, const void *alpha,
                             const CusparseMatrixOpaque *matrix,
                             const CusparseDenseOpaque *b, const void *beta,
                             CusparseDense c, CusparseType compute,
                             CusparseMatrixWay, void *buffer) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSpMM");
  if (operation == turned)
    return CusparseStatus::NotSupported;
  (void)sparse;
  return run({handle, alpha, beta, matrix, b, c, second == turned, false, false,
              compute},
             buffer);
}

CusparseStatus sampledSize(CusparseHandle handle, CusparseOperation operation,
                           CusparseOperation second, const void *alpha,
                           const CusparseDenseOpaque *a,
                           const CusparseDenseOpaque *b, const void *beta,
                           CusparseMatrix c, CusparseType compute,
                           CusparseSampledWay, size_t *bytes) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSDDMM_bufferSize");
  (void)sparse;
  return sizeOf({handle, alpha, beta, c, a, b, operation == turned,
                 second == turned, true, compute},
                bytes);
}

CusparseStatus sampledProduct(CusparseHandle handle,
                              CusparseOperation operation,
                              CusparseOperation second, const void *alpha,
                              const CusparseDenseOpaque *a,
                              const CusparseDenseOpaque *b, const void *beta,
                              CusparseMatrix c, CusparseType compute,
                              CusparseSampledWay, void *buffer) {
  MGPU_FAKE_SPARSE_ENTER("cusparseSDDMM");
  (void)sparse;
  return run({handle, alpha, beta, c, a, b, operation == turned,
              second == turned, true, compute},
             buffer);
}

const char *errorString(CusparseStatus) {
  return "an internal operation failed";
}

} // namespace
} // namespace cusparse

std::shared_ptr<const CusparseApi> FakeCusparse::api() {
  auto api = std::make_shared<CusparseApi>();
  api->Create = cusparse::create;
  api->Destroy = cusparse::destroy;
  api->SetStream = cusparse::setStream;
  api->CreateCsr = cusparse::createCsr;
  api->DestroySpMat = cusparse::destroyMatrix;
  api->CreateDnVec = cusparse::createVector;
  api->DestroyDnVec = cusparse::destroyVector;
  api->CreateDnMat = cusparse::createDense;
  api->DestroyDnMat = cusparse::destroyDense;
  api->SpMV_bufferSize = cusparse::vectorSize;
  api->SpMV = cusparse::vectorProduct;
  api->SpMM_bufferSize = cusparse::matrixSize;
  api->SpMM = cusparse::matrixProduct;
  api->SDDMM_bufferSize = cusparse::sampledSize;
  api->SDDMM = cusparse::sampledProduct;
  MGPU_CUSPARSE_FUNCTIONS(MGPU_FAKE_LOCK_ENTRY)
  api->GetErrorString = cusparse::errorString;
  return api;
}

} // namespace mgpu::fake
