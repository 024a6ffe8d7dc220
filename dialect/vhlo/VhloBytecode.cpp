// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and attributes as VHLO encodes them: a code, then the fields. Reading
// gives the type or attribute of StableHLO, func or MLIR that stands for it.
#include "dialect/vhlo/Vhlo.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mgpu::vhlo {

using namespace mlir;

namespace {

/// The fields of one type or attribute. A null type or attribute, and nullopt,
/// are what could not be read; the reader has an error then.
class Fields {
public:
  explicit Fields(DialectBytecodeReader &reader)
      : reader(reader), context(reader.getContext()) {}

  Type type(uint64_t code);
  Attribute attribute(uint64_t code);

private:
  template <typename... Words>
  std::nullptr_t refuse(const Words &...words) {
    InFlightDiagnostic error = reader.emitError();
    (void)(error << ... << words);
    return nullptr;
  }
  std::optional<uint64_t> number() {
    uint64_t value;
    return succeeded(reader.readVarInt(value)) ? std::optional(value)
                                               : std::nullopt;
  }
  std::optional<int64_t> signedNumber() {
    int64_t value;
    return succeeded(reader.readSignedVarInt(value)) ? std::optional(value)
                                                     : std::nullopt;
  }
  std::optional<SmallVector<int64_t>> numbers() {
    SmallVector<int64_t> values;
    return succeeded(reader.readSignedVarInts(values)) ? std::optional(values)
                                                       : std::nullopt;
  }
  std::optional<double> real() {
    auto value = reader.readAPFloatWithKnownSemantics(APFloat::IEEEdouble());
    return succeeded(value) ? std::optional(value->convertToDouble())
                            : std::nullopt;
  }
  std::optional<SmallVector<Type>> types() {
    SmallVector<Type> values;
    return succeeded(reader.readTypes(values)) ? std::optional(values)
                                               : std::nullopt;
  }
  template <typename T = Type>
  T typeField() {
    T value;
    return succeeded(reader.readType(value)) ? value : nullptr;
  }
  template <typename T = Attribute>
  T attributeField() {
    T value;
    return succeeded(reader.readAttribute(value)) ? value : nullptr;
  }
  template <typename AttrT, typename E>
  Attribute enumeration(std::optional<E> (*meaning)(uint32_t)) {
    auto value = number();
    if (!value)
      return nullptr;
    auto known =
        *value <= UINT32_MAX ? meaning(uint32_t(*value)) : std::nullopt;
    return known ? Attribute(AttrT::get(context, *known))
                 : refuse("no value ", *value, " of VHLO's enumeration");
  }

  Type scalarType(uint64_t code);
  Type tensorType(Attribute encoding);
  Type quantizedType();
  Type quantizedAxisType();
  Attribute array();
  Attribute dictionary();
  Attribute floating();
  Attribute integer();
  Attribute tensor();
  Attribute alias();
  Attribute accuracy();
  Attribute meshAttribute(uint64_t code);
  std::optional<SmallVector<bool>> booleans(ArrayRef<char> blob, int64_t count);

  DialectBytecodeReader &reader;
  MLIRContext *context;
};

} // namespace

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The scalar of a code; null where it is none.
Type Fields::scalarType(uint64_t code) {
  Builder b(context);
  auto whole = [&](unsigned bits, bool isSigned) {
    return isSigned ? b.getIntegerType(bits) : b.getIntegerType(bits, false);
  };
  switch (code) {
  case 0:
    return b.getI1Type();
  case 2:
    return b.getBF16Type();
  case 3:
    return b.getF16Type();
  case 4:
    return b.getF32Type();
  case 5:
    return b.getF64Type();
  case 6:
    return Float8E4M3FNType::get(context);
  case 7:
    return Float8E5M2Type::get(context);
  case 9:
    return b.getIndexType();
  case 10: // ... 14: 4 to 64 bits
  case 11:
  case 12:
  case 13:
  case 14:
    return whole(4u << (code - 10), true);
  case 15: // ... 19
  case 16:
  case 17:
  case 18:
  case 19:
    return whole(4u << (code - 15), false);
  case 27:
    return Float8E4M3FNUZType::get(context);
  case 28:
    return Float8E5M2FNUZType::get(context);
  case 29:
    return Float8E4M3B11FNUZType::get(context);
  case 31:
    return whole(2, true);
  case 32:
    return whole(2, false);
  case 33:
    return b.getNoneType();
  case 34:
    return FloatTF32Type::get(context);
  case 35:
    return Float8E4M3Type::get(context);
  case 36:
    return Float8E3M4Type::get(context);
  case 37:
    return Float4E2M1FNType::get(context);
  case 38:
    return Float6E2M3FNType::get(context);
  case 39:
    return Float6E3M2FNType::get(context);
  case 40:
    return Float8E8M0FNUType::get(context);
  default:
    return nullptr;
  }
}

Type Fields::tensorType(Attribute encoding) {
  auto shape = numbers();
  Type element = shape ? typeField() : nullptr;
  if (!element)
    return nullptr;
  return RankedTensorType::getChecked([&] { return reader.emitError(); },
                                      *shape, element, encoding);
}

Type Fields::quantizedType() {
  auto flags = number();
  Type storage = flags ? typeField() : nullptr;
  Type expressed = storage ? typeField() : nullptr;
  auto scale = expressed ? real() : std::nullopt;
  auto zero = scale ? signedNumber() : std::nullopt;
  auto least = zero ? signedNumber() : std::nullopt;
  auto most = least ? signedNumber() : std::nullopt;
  if (!most)
    return nullptr;
  return quant::UniformQuantizedType::getChecked(
      [&] { return reader.emitError(); }, unsigned(*flags), storage, expressed,
      *scale, *zero, *least, *most);
}

Type Fields::quantizedAxisType() {
  auto flags = number();
  Type storage = flags ? typeField() : nullptr;
  Type expressed = storage ? typeField() : nullptr;
  auto axis = expressed ? number() : std::nullopt;
  auto least = axis ? signedNumber() : std::nullopt;
  auto most = least ? signedNumber() : std::nullopt;
  SmallVector<double> scales;
  auto readScale = [&](double &scale) {
    auto value = real();
    scale = value.value_or(0);
    return success(value.has_value());
  };
  if (!most || failed(reader.readList(scales, readScale)))
    return nullptr;
  auto zeros = numbers();
  if (!zeros)
    return nullptr;
  return quant::UniformQuantizedPerAxisType::getChecked(
      [&] { return reader.emitError(); }, unsigned(*flags), storage, expressed,
      scales, *zeros, int32_t(*axis), *least, *most);
}

Type Fields::type(uint64_t code) {
  if (Type scalar = scalarType(code))
    return scalar;
  switch (code) {
  case 1: {
    Type element = typeField();
    return element ? ComplexType::getChecked([&] { return reader.emitError(); },
                                             element)
                   : nullptr;
  }
  case 8: {
    auto inputs = types();
    auto results = inputs ? types() : std::nullopt;
    return results ? FunctionType::get(context, *inputs, *results) : nullptr;
  }
  case 20:
    return tensorType(nullptr);
  case 21: {
    Attribute encoding = attributeField();
    return encoding ? tensorType(encoding) : nullptr;
  }
  case 22:
    return stablehlo::TokenType::get(context);
  case 23: {
    auto elements = types();
    return elements ? TupleType::get(context, *elements) : nullptr;
  }
  case 24:
    return quantizedType();
  case 25: {
    Type element = typeField();
    return element ? UnrankedTensorType::getChecked(
                         [&] { return reader.emitError(); }, element)
                   : nullptr;
  }
  case 30:
    return quantizedAxisType();
  case 41: {
    auto shape = numbers();
    Type element = shape ? typeField() : nullptr;
    return element ? MemRefType::getChecked(
                         [&] { return reader.emitError(); }, *shape, element,
                         MemRefLayoutAttrInterface(), Attribute())
                   : nullptr;
  }
  case 42: {
    auto elements = types();
    return elements ? stablehlo::FutureType::get(context, *elements) : nullptr;
  }
  default:
    return refuse("no type has VHLO's code ", code);
  }
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute Fields::array() {
  SmallVector<Attribute> elements;
  return succeeded(reader.readAttributes(elements))
             ? ArrayAttr::get(context, elements)
             : nullptr;
}

Attribute Fields::dictionary() {
  SmallVector<NamedAttribute> pairs;
  auto count = number();
  for (uint64_t k = 0; count && k < *count; ++k) {
    auto name = attributeField<StringAttr>();
    Attribute value = name ? attributeField() : nullptr;
    if (!value)
      return nullptr;
    if (name.empty())
      return refuse("a dictionary has a key without a name");
    pairs.emplace_back(name, value);
  }
  if (!count)
    return nullptr;
  if (DictionaryAttr::findDuplicate(pairs, /*isSorted=*/false))
    return refuse("a dictionary has a key twice");
  return DictionaryAttr::get(context, pairs);
}

Attribute Fields::floating() {
  auto type = typeField<FloatType>();
  if (!type)
    return nullptr;
  auto value = reader.readAPFloatWithKnownSemantics(type.getFloatSemantics());
  return succeeded(value) ? FloatAttr::get(type, *value) : nullptr;
}

Attribute Fields::integer() {
  Type type = typeField();
  if (!type)
    return nullptr;
  if (!type.isIntOrIndex())
    return refuse("an integer has the type ", type);
  auto value = reader.readAPIntWithKnownWidth(
      type.isIndex() ? IndexType::kInternalStorageBitWidth
                     : type.getIntOrFloatBitWidth());
  return succeeded(value) ? IntegerAttr::get(type, *value) : nullptr;
}

/// Booleans are a byte each, or packed since 1.0: the lowest bit comes first,
/// and one byte of ones stands for as many as there are.
std::optional<SmallVector<bool>> Fields::booleans(ArrayRef<char> blob,
                                                  int64_t count) {
  const size_t size = size_t(count);
  const bool allTrue = blob.size() == 1 && blob[0] == char(0xff);
  if (count > 0 && (allTrue || (blob.size() == 1 && blob[0] == 0)))
    return SmallVector<bool>{allTrue};
  SmallVector<bool> values;
  values.reserve(size);
  if (blob.size() == size) {
    for (char byte : blob)
      values.push_back(byte != 0);
  } else if (blob.size() == llvm::divideCeil(size, 8)) {
    for (size_t k = 0; k < size; ++k)
      values.push_back(blob[k / 8] >> (k % 8) & 1);
  } else if (blob.size() == 1) { // one byte of the years without packing
    values.push_back(blob[0] != 0);
  } else {
    return std::nullopt;
  }
  return values;
}

Attribute Fields::tensor() {
  auto type = typeField<RankedTensorType>();
  ArrayRef<char> blob;
  if (!type || failed(reader.readBlob(blob)))
    return nullptr;
  if (!type.hasStaticShape())
    return refuse("a constant has the type ", type);
  const Type element = type.getElementType();
  if (element.isInteger(1)) {
    auto values = booleans(blob, type.getNumElements());
    return values ? DenseElementsAttr::get(type, *values)
                  : refuse("a constant of type ", type, " has ", blob.size(),
                           " bytes");
  }
  const bool isNumber = element.isIntOrIndexOrFloat();
  bool isSplat = false;
  if ((!isNumber && !isa<ComplexType>(element)) ||
      !DenseElementsAttr::isValidRawBuffer(type, blob, isSplat))
    return refuse("a constant of type ", type, " has ", blob.size(), " bytes");
  return DenseElementsAttr::getFromRawBuffer(type, blob);
}

Attribute Fields::alias() {
  auto outputs = numbers();
  auto operand = outputs ? signedNumber() : std::nullopt;
  auto operands = operand ? numbers() : std::nullopt;
  return operands ? stablehlo::OutputOperandAliasAttr::get(context, *outputs,
                                                           *operand, *operands)
                  : nullptr;
}

Attribute Fields::accuracy() {
  auto absolute = real(), relative = absolute ? real() : std::nullopt;
  auto ulps = relative ? signedNumber() : std::nullopt;
  auto mode =
      ulps ? attributeField<stablehlo::ResultAccuracyModeAttr>() : nullptr;
  if (!mode)
    return nullptr;
  Builder b(context);
  return stablehlo::ResultAccuracyAttr::get(
      context, b.getF64FloatAttr(*absolute), b.getF64FloatAttr(*relative),
      *ulps, mode);
}

/// Axes of meshes. A part of an axis, which is an attribute of its own in
/// VHLO, is two numbers here until its axis is read.
Attribute Fields::meshAttribute(uint64_t code) {
  Builder b(context);
  if (code == 21) {
    auto before = signedNumber(), size = before ? signedNumber() : std::nullopt;
    return size ? b.getDenseI64ArrayAttr({*before, *size}) : nullptr;
  }
  if (code == 22) {
    auto name = attributeField<StringAttr>();
    auto hasPart = name ? number() : std::nullopt;
    if (!hasPart)
      return nullptr;
    auto part = *hasPart ? attributeField<DenseI64ArrayAttr>()
                         : b.getDenseI64ArrayAttr({1, 0});
    return part && part.size() == 2
               ? stablehlo::AxisRefAttr::get(context, name, part[0], part[1])
               : nullptr;
  }
  if (code == 24) {
    auto name = attributeField<StringAttr>();
    auto size = name ? signedNumber() : std::nullopt;
    return size ? stablehlo::MeshAxisAttr::get(context, name, *size) : nullptr;
  }
  auto first = attributeField();
  if (code == 23) {
    auto axes = first ? attributeField<ArrayAttr>() : nullptr;
    if (!axes || !llvm::all_of(axes, llvm::IsaPred<stablehlo::AxisRefAttr>))
      return axes ? refuse("groups have axes that are none") : nullptr;
    if (auto name = dyn_cast<StringAttr>(first))
      first = FlatSymbolRefAttr::get(name);
    return stablehlo::ReplicaGroupMeshAxesAttr::get(
        context, first,
        llvm::to_vector(axes.getAsRange<stablehlo::AxisRefAttr>()));
  }
  auto axes = dyn_cast_or_null<ArrayAttr>(first);
  DenseIntElementsAttr devices;
  if (!axes || failed(reader.readOptionalAttribute(devices)))
    return nullptr;
  if (!llvm::all_of(axes, llvm::IsaPred<stablehlo::MeshAxisAttr>))
    return refuse("a mesh has axes that are none");
  return stablehlo::MeshAttr::get(
      context, llvm::to_vector(axes.getAsRange<stablehlo::MeshAxisAttr>()),
      devices);
}

Attribute Fields::attribute(uint64_t code) {
  using namespace stablehlo;
  switch (code) {
  case 1:
    return array();
  case 2: {
    auto value = number();
    if (!value || *value > 1)
      return value ? refuse("a boolean is ", *value) : nullptr;
    return BoolAttr::get(context, *value == 1);
  }
  case 3:
    return enumeration<ComparisonDirectionAttr>(symbolizeComparisonDirection);
  case 4:
    return enumeration<ComparisonTypeAttr>(symbolizeComparisonType);
  case 5:
    return enumeration<CustomCallApiVersionAttr>(symbolizeCustomCallApiVersion);
  case 6:
    return dictionary();
  case 7:
    return enumeration<FftTypeAttr>(symbolizeFftType);
  case 8:
    return floating();
  case 9:
    return integer();
  case 10:
    return alias();
  case 11:
    return enumeration<PrecisionAttr>(symbolizePrecision);
  case 12:
    return enumeration<RngAlgorithmAttr>(symbolizeRngAlgorithm);
  case 13:
    return enumeration<RngDistributionAttr>(symbolizeRngDistribution);
  case 14: {
    StringRef text;
    return succeeded(reader.readString(text)) ? StringAttr::get(context, text)
                                              : nullptr;
  }
  case 15:
    return tensor();
  case 16:
    return enumeration<TransposeAttr>(symbolizeTranspose);
  case 17: {
    Type type = typeField();
    return type ? TypeAttr::get(type) : nullptr;
  }
  case 18: {
    auto bounds = numbers();
    return bounds ? TypeExtensionsAttr::get(context, *bounds) : nullptr;
  }
  case 19:
    return enumeration<ResultAccuracyModeAttr>(symbolizeResultAccuracyMode);
  case 20:
    return accuracy();
  default:
    return code >= 21 && code <= 25
               ? meshAttribute(code)
               : refuse("no attribute has VHLO's code ", code);
  }
}

Type readType(DialectBytecodeReader &reader) {
  uint64_t code;
  return succeeded(reader.readVarInt(code)) ? Fields(reader).type(code)
                                            : nullptr;
}

Attribute readAttribute(DialectBytecodeReader &reader) {
  uint64_t code;
  return succeeded(reader.readVarInt(code)) ? Fields(reader).attribute(code)
                                            : nullptr;
}

} // namespace mgpu::vhlo
