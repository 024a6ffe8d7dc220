// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of the sdy dialect, which JAX leaves in VHLO as they are, in
// the encoding of https://github.com/openxla/shardy, file
// shardy/dialect/sdy/ir/bytecode.td. That encoding only ever got further codes.
#include "dialect/sdy/SdyDialect.h"
#include "dialect/vhlo/Vhlo.h"

#include "mlir/IR/Builders.h"

namespace mgpu::vhlo {

using namespace mlir;
using namespace mgpu::sdy;

namespace {

struct SdyVersion : DialectVersion {};

/// Reads the fields of one attribute, one call for each; the first that fails
/// makes all later ones do nothing.
class SdyFields {
public:
  explicit SdyFields(DialectBytecodeReader &reader)
      : reader(reader), b(reader.getContext()) {}

  Attribute attribute();

private:
  uint64_t number() {
    uint64_t value = 0;
    isGood = isGood && succeeded(reader.readVarInt(value));
    return value;
  }
  int64_t signedNumber() {
    int64_t value = 0;
    isGood = isGood && succeeded(reader.readSignedVarInt(value));
    return value;
  }
  StringAttr text() {
    StringRef value;
    isGood = isGood && succeeded(reader.readString(value));
    return b.getStringAttr(value);
  }
  template <typename T>
  T one() {
    T value;
    isGood = isGood && succeeded(reader.readAttribute(value));
    return isGood ? value : T();
  }
  template <typename T>
  SmallVector<T> list() {
    SmallVector<T> values;
    isGood = isGood && succeeded(reader.readList(values, [this](T &value) {
               return reader.readAttribute(value);
             }));
    return isGood ? values : SmallVector<T>();
  }
  SmallVector<int64_t> numbers() {
    SmallVector<int64_t> values;
    isGood = isGood && succeeded(reader.readSignedVarInts(values));
    return values;
  }
  Attribute ifGood(function_ref<Attribute()> make) {
    return isGood ? make() : nullptr;
  }

  Attribute axis();
  Attribute dimension();
  Attribute sharding(uint64_t code);
  Attribute shardingRule();
  Attribute mesh();

  DialectBytecodeReader &reader;
  Builder b;
  bool isGood = true;
};

/// A part of an axis is an attribute of its own there: two numbers here.
Attribute SdyFields::axis() {
  StringAttr name = text();
  Attribute part;
  isGood = isGood && succeeded(reader.readOptionalAttribute(part));
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(part);
  isGood = isGood && (!part || (numbers && numbers.size() == 2));
  return ifGood([&] {
    return numbers
               ? AxisRefAttr::get(b.getContext(), name, numbers[0], numbers[1])
               : AxisRefAttr::get(b.getContext(), name, 1, 0);
  });
}

Attribute SdyFields::dimension() {
  auto axes = list<AxisRefAttr>();
  bool isClosed = false, hasPriority = false;
  uint64_t priority = 0;
  isGood = isGood && succeeded(reader.readBool(isClosed)) &&
           succeeded(reader.readVarIntWithFlag(priority, hasPriority));
  return ifGood([&] {
    return DimensionShardingAttr::get(b.getContext(), axes, isClosed,
                                      hasPriority ? int64_t(priority) : -1);
  });
}

Attribute SdyFields::sharding(uint64_t code) {
  auto mesh = one<Attribute>();
  auto dims = list<DimensionShardingAttr>();
  auto replicated = list<AxisRefAttr>();
  auto unreduced = code == 6 ? SmallVector<AxisRefAttr>() : list<AxisRefAttr>();
  static constexpr StringLiteral reductions[] = {"sum", "max", "min"};
  const uint64_t reduction = code == 17 ? uint64_t(signedNumber()) : 0;
  isGood = isGood && reduction < std::size(reductions);
  return ifGood([&] {
    return TensorShardingAttr::get(
        b.getContext(), mesh, dims, replicated, unreduced,
        reduction ? b.getStringAttr(reductions[reduction]) : StringAttr());
  });
}

/// Sizes of factors, the mappings of operands and results, and four lists of
/// factors: read to their end and left out.
Attribute SdyFields::shardingRule() {
  (void)numbers();
  (void)list<Attribute>();
  (void)list<Attribute>();
  for (int k = 0; k < 4; ++k)
    (void)numbers();
  bool isCustom = false;
  isGood = isGood && succeeded(reader.readBool(isCustom));
  return ifGood([&] { return b.getUnitAttr(); });
}

Attribute SdyFields::mesh() {
  auto axes = list<MeshAxisAttr>();
  auto devices = numbers();
  return ifGood([&] {
    return MeshAttr::getChecked([&] { return reader.emitError(); },
                                b.getContext(), ArrayRef<MeshAxisAttr>(axes),
                                ArrayRef<int64_t>(devices));
  });
}

Attribute SdyFields::attribute() {
  MLIRContext *context = b.getContext();
  const uint64_t code = number();
  switch (isGood ? code : UINT64_MAX) {
  case 0: {
    auto axes = list<StringAttr>();
    return ifGood([&] { return ManualAxesAttr::get(context, axes); });
  }
  case 1: {
    StringAttr name = text();
    const int64_t size = signedNumber();
    return ifGood([&] { return MeshAxisAttr::get(context, name, size); });
  }
  case 2:
    return mesh();
  case 3: {
    const int64_t before = signedNumber(), size = signedNumber();
    return ifGood([&] { return b.getDenseI64ArrayAttr({before, size}); });
  }
  case 4:
    return axis();
  case 5:
    return dimension();
  case 6:
  case 15:
  case 17:
    return sharding(code);
  case 7:
  case 16: {
    auto all = list<TensorShardingAttr>();
    return ifGood(
        [&] { return TensorShardingPerValueAttr::get(context, all); });
  }
  case 8: // of a rule how an operation may be cut, which nothing here asks for
    (void)numbers();
    return ifGood([&] { return b.getUnitAttr(); });
  case 9:
    (void)list<Attribute>();
    return ifGood([&] { return b.getUnitAttr(); });
  case 10:
    return shardingRule();
  case 11: {
    auto axes = list<AxisRefAttr>();
    return ifGood([&] { return AxisListAttr::get(context, axes); });
  }
  case 12: {
    auto lists = list<AxisListAttr>();
    return ifGood([&] { return AxisListsAttr::get(context, lists); });
  }
  case 13: {
    auto axes = list<AxisRefAttr>();
    const int64_t from = signedNumber(), to = signedNumber();
    return ifGood([&] {
      return AllToAllParamAttr::get(context, AxisListAttr::get(context, axes),
                                    from, to);
    });
  }
  case 14: {
    auto all = list<AllToAllParamAttr>();
    return ifGood([&] { return AllToAllParamsAttr::get(context, all); });
  }
  default:
    if (isGood)
      reader.emitError() << "no attribute that is read has sdy's code " << code;
    return nullptr;
  }
}

class SdyBytecode : public BytecodeDialectInterface {
public:
  explicit SdyBytecode(Dialect *dialect) : BytecodeDialectInterface(dialect) {}
  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    return SdyFields(reader).attribute();
  }
  /// Three numbers, of which nothing that is read depends on one.
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    uint64_t part;
    for (int k = 0; k < 3; ++k)
      if (failed(reader.readVarInt(part)))
        return nullptr;
    return std::make_unique<SdyVersion>();
  }
};

} // namespace

void addSdyBytecode(DialectRegistry &registry) {
  registry.insert<SdyDialect>();
  registry.addExtension(+[](MLIRContext *, SdyDialect *dialect) {
    dialect->addInterfaces<SdyBytecode>();
  });
}

} // namespace mgpu::vhlo
