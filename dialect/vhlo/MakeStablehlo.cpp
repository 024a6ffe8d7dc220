// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From VHLO's operations to StableHLO's: another name, attributes put together
// that VHLO has in parts, and defaults left out, which VHLO spells.
#include "dialect/vhlo/Vhlo.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mgpu::vhlo {

using namespace mlir;

namespace {

/// The attributes of one operation on their way. `wrong` keeps the name of one
/// that is not as it must be.
class Attributes {
public:
  explicit Attributes(Operation *op)
      : name(op->getName().stripDialect().drop_back(3)), list(op->getAttrs()),
        b(op->getContext()) {}

  void convert();
  StringRef name; ///< of the operation, without its version
  NamedAttrList list;
  StringRef wrong;

private:
  template <typename T>
  T take(StringRef key) {
    auto value = dyn_cast_or_null<T>(list.erase(key));
    if (!value && wrong.empty())
      wrong = key;
    return value;
  }
  int64_t takeInt(StringRef key) {
    auto value = take<IntegerAttr>(key);
    return value ? value.getValue().sextOrTrunc(64).getSExtValue() : 0;
  }
  SmallVector<int64_t> takeInts(StringRef key) {
    auto value = take<DenseIntElementsAttr>(key);
    SmallVector<int64_t> numbers;
    if (value)
      for (const APInt &number : value)
        numbers.push_back(number.sextOrTrunc(64).getSExtValue());
    return numbers;
  }
  /// None where the first version of an operation has none.
  SmallVector<int64_t> takeNewInts(StringRef key) {
    return list.get(key) ? takeInts(key) : SmallVector<int64_t>();
  }
  void each(StringRef key, Attribute value);
  void dropDefaults();
  bool isDefault(StringRef key, Attribute value) const;
  Attribute algorithm();
  void convertProduct();
  void convertConvolution();
  /// Gathers the dimension numbers of gather and scatter. `from` has the names
  /// of a window's dimensions, of those it lacks, of both batches, and the map.
  template <typename Numbers>
  void convertIndexing(StringRef to, std::array<StringRef, 5> from);

  Builder b;
};

bool isSplat(Attribute value, int64_t number) {
  auto elements = dyn_cast<DenseIntElementsAttr>(value);
  return elements && elements.isSplat() &&
         elements.getSplatValue<APInt>() == uint64_t(number);
}

/// Whether an attribute says what is so without it, too.
bool Attributes::isDefault(StringRef key, Attribute value) const {
  using namespace stablehlo;
  auto isAny = [&](std::initializer_list<StringRef> names) {
    return llvm::is_contained(names, key);
  };
  if (auto flag = dyn_cast<BoolAttr>(value))
    return !flag.getValue() &&
           (isAny({"has_side_effect", "indices_are_sorted", "unique_indices",
                   "is_host_transfer", "is_stable", "use_global_device_ids",
                   "has_dynamic_root"}) ||
            (key == "lower" && name == "cholesky"));
  if (auto number = dyn_cast<IntegerAttr>(value))
    return (number.getValue().isZero() &&
            (key == "channel_id" ||
             (key == "version" && name == "composite"))) ||
           (number.getValue().isAllOnes() && key == "dimension" &&
            name == "sort");
  if (auto list = dyn_cast<ArrayAttr>(value))
    return (list.empty() &&
            isAny({"arg_attrs", "res_attrs", "called_computations",
                   "operand_layouts", "result_layouts", "layout",
                   "output_operand_aliases", "result_tilings"})) ||
           (key == "precision_config" && llvm::all_of(list, [](Attribute each) {
              auto precision = dyn_cast<PrecisionAttr>(each);
              return precision && precision.getValue() == Precision::DEFAULT;
            }));
  if (auto text = dyn_cast<StringAttr>(value))
    return text.empty() && isAny({"sym_visibility", "backend_config",
                                  "infeed_config", "outfeed_config"});
  if (auto fields = dyn_cast<DictionaryAttr>(value))
    return fields.empty() && isAny({"backend_config", "composite_attributes"});
  if (auto type = dyn_cast<ComparisonTypeAttr>(value))
    return type.getValue() == ComparisonType::NOTYPE;
  if (auto accuracy = dyn_cast<ResultAccuracyAttr>(value))
    return accuracy.getAtol().getValue().isZero() &&
           accuracy.getRtol().getValue().isZero() && !accuracy.getUlps() &&
           accuracy.getMode().getValue() == ResultAccuracyMode::DEFAULT;
  if (auto numbers = dyn_cast<DenseElementsAttr>(value))
    return (isAny({"window_strides", "lhs_dilation", "rhs_dilation",
                   "base_dilations", "window_dilations"}) &&
            isSplat(value, 1)) ||
           (isAny({"padding", "window_reversal"}) && isSplat(value, 0)) ||
           (numbers.empty() &&
            isAny({"source_target_pairs", "known_expanding_dimensions",
                   "known_nonexpanding_dimensions"}));
  return false;
}

/// The one custom call's version that is the default.
bool isOriginal(Attribute value) {
  auto version = dyn_cast<stablehlo::CustomCallApiVersionAttr>(value);
  return version && version.getValue() ==
                        stablehlo::CustomCallApiVersion::API_VERSION_ORIGINAL;
}

void Attributes::dropDefaults() {
  // These two are there together or not at all.
  Attribute operands = list.get("operand_layouts"),
            results = list.get("result_layouts");
  const bool hasLayouts = operands && results &&
                          !(isDefault("operand_layouts", operands) &&
                            isDefault("result_layouts", results));
  NamedAttrList kept;
  for (NamedAttribute each : list) {
    const StringRef key = each.getName();
    const bool isLayout = key == "operand_layouts" || key == "result_layouts";
    if (key == "api_version"
            ? !isOriginal(each.getValue())
            : (isLayout && hasLayouts) || !isDefault(key, each.getValue()))
      kept.append(each);
  }
  list = std::move(kept);
}

/// Attributes that are another kind of MLIR's, or have another name.
void Attributes::each(StringRef key, Attribute value) {
  static constexpr StringLiteral numbers[] = {"base_dilations",
                                              "broadcast_dimensions",
                                              "broadcast_sizes",
                                              "edge_padding_high",
                                              "edge_padding_low",
                                              "fft_length",
                                              "interior_padding",
                                              "known_expanding_dimensions",
                                              "known_nonexpanding_dimensions",
                                              "lhs_dilation",
                                              "limit_indices",
                                              "permutation",
                                              "rhs_dilation",
                                              "slice_sizes",
                                              "start_indices",
                                              "strides",
                                              "window_dilations",
                                              "window_dimensions",
                                              "window_strides"};
  if (llvm::is_contained(numbers, key) ||
      (key == "dimensions" && !isa<DenseI64ArrayAttr>(value))) {
    list.set(key, b.getDenseI64ArrayAttr(takeInts(key)));
  } else if (key == "window_reversal") {
    if (auto flags = take<DenseElementsAttr>(key);
        flags && flags.getElementType().isInteger(1))
      list.set(key, b.getDenseBoolArrayAttr(
                        llvm::to_vector(flags.getValues<bool>())));
    else
      wrong = "window_reversal";
  } else if (key == "use_global_device_ids" || key == "has_dynamic_root") {
    take<BoolAttr>(key);
    list.set(key, b.getUnitAttr());
  } else if (key == "channel_id") {
    const int64_t type = list.get("channel_type") ? takeInt("channel_type") : 0;
    list.set("channel_handle", stablehlo::ChannelHandleAttr::get(
                                   b.getContext(), takeInt(key), type));
  } else if (key == "callee" || key == "decomposition") {
    if (auto symbol = take<StringAttr>(key))
      list.set(key, FlatSymbolRefAttr::get(symbol));
  } else if (key == "called_computations") {
    SmallVector<Attribute> symbols;
    for (Attribute symbol : take<ArrayAttr>(key).getValue())
      if (auto text = dyn_cast<StringAttr>(symbol))
        symbols.push_back(FlatSymbolRefAttr::get(text));
      else
        wrong = key;
    list.set(key, b.getArrayAttr(symbols));
  }
}

/// The types that a product computes in; none where VHLO has none.
Attribute Attributes::algorithm() {
  if (!list.get("lhs_precision_type"))
    return nullptr;
  auto left = take<TypeAttr>("lhs_precision_type"),
       right = take<TypeAttr>("rhs_precision_type"),
       sum = take<TypeAttr>("accumulation_type");
  static constexpr StringLiteral rest[] = {
      "lhs_component_count", "rhs_component_count", "num_primitive_operations",
      "allow_imprecise_accumulation"};
  if (left && isa<NoneType>(left.getValue())) {
    for (StringRef key : rest)
      list.erase(key);
    return nullptr;
  }
  const int64_t counts[] = {takeInt(rest[0]), takeInt(rest[1]),
                            takeInt(rest[2])};
  auto isImprecise = take<BoolAttr>(rest[3]);
  if (!wrong.empty())
    return nullptr;
  return stablehlo::DotAlgorithmAttr::get(
      b.getContext(), left.getValue(), right.getValue(), sum.getValue(),
      counts[0], counts[1], counts[2], isImprecise.getValue());
}

void Attributes::convertProduct() {
  auto leftBatch = takeInts("lhs_batching_dimensions"),
       rightBatch = takeInts("rhs_batching_dimensions"),
       left = takeInts("lhs_contracting_dimensions"),
       right = takeInts("rhs_contracting_dimensions");
  list.set("dot_dimension_numbers",
           stablehlo::DotDimensionNumbersAttr::get(b.getContext(), leftBatch,
                                                   rightBatch, left, right));
  if (Attribute types = algorithm())
    list.set("algorithm", types);
}

void Attributes::convertConvolution() {
  const int64_t batch = takeInt("input_batch_dimension"),
                feature = takeInt("input_feature_dimension");
  auto spatial = takeInts("input_spatial_dimensions");
  const int64_t kernelIn = takeInt("kernel_input_feature_dimension"),
                kernelOut = takeInt("kernel_output_feature_dimension");
  auto kernel = takeInts("kernel_spatial_dimensions");
  const int64_t outBatch = takeInt("output_batch_dimension"),
                outFeature = takeInt("output_feature_dimension");
  auto out = takeInts("output_spatial_dimensions");
  list.set("dimension_numbers",
           stablehlo::ConvDimensionNumbersAttr::get(
               b.getContext(), batch, feature, spatial, kernelIn, kernelOut,
               kernel, outBatch, outFeature, out));
  if (name == "dynamic_conv")
    list.erase("padding");
}

template <typename Numbers>
void Attributes::convertIndexing(StringRef to, std::array<StringRef, 5> from) {
  auto window = takeInts(from[0]), dropped = takeInts(from[1]),
       batch = takeNewInts(from[2]), startBatch = takeNewInts(from[3]),
       map = takeInts(from[4]);
  list.set(to, Numbers::get(b.getContext(), window, dropped, batch, startBatch,
                            map, takeInt("index_vector_dim")));
}

void Attributes::convert() {
  const bool isTransfer = name == "send" || name == "recv";
  if (name == "dot_general")
    convertProduct();
  else if (name == "convolution" || name == "dynamic_conv")
    convertConvolution();
  else if (name == "gather" || name == "dynamic_gather")
    convertIndexing<stablehlo::GatherDimensionNumbersAttr>(
        "dimension_numbers",
        {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
         "start_indices_batching_dims", "start_index_map"});
  else if (name == "scatter")
    convertIndexing<stablehlo::ScatterDimensionNumbersAttr>(
        "scatter_dimension_numbers",
        {"update_window_dims", "inserted_window_dims", "input_batching_dims",
         "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"});
  else if (isTransfer) // its channel is written though it be 0
    each("channel_id", list.get("channel_id"));
  dropDefaults();
  const SmallVector<NamedAttribute> left(list.begin(), list.end());
  for (NamedAttribute attribute : left)
    each(attribute.getName(), attribute.getValue());
}

/// "stablehlo.add" of "vhlo.add_v1". A return is its function's or a region's.
std::string nameFor(Operation *op, StringRef name) {
  const bool isFunctions =
      name == "func" || name == "call" ||
      (name == "return" && isa<func::FuncOp>(op->getParentOp()));
  return ((isFunctions ? "func." : "stablehlo.") + name).str();
}

LogicalResult translate(Operation *op) {
  Attributes attributes(op);
  attributes.convert();
  if (!attributes.wrong.empty())
    return op->emitError() << "has an attribute '" << attributes.wrong
                           << "' of another kind";
  OperationState state(op->getLoc(), nameFor(op, attributes.name),
                       op->getOperands(), op->getResultTypes(), {});
  auto known = state.name.getRegisteredInfo();
  if (!known)
    return op->emitError() << "is no operation that is read";
  NamedAttrList own;
  for (NamedAttribute each : attributes.list)
    if (llvm::is_contained(known->getAttributeNames(), each.getName()))
      own.append(each);
    else
      state.attributes.append(each);
  for (unsigned k = 0; k < op->getNumRegions(); ++k)
    state.addRegion();
  Operation *made = OpBuilder(op).create(state);
  if (!own.empty() && failed(made->setPropertiesFromAttribute(
                          own.getDictionary(op->getContext()),
                          [&] { return made->emitError(); })))
    return failure();
  for (auto [from, to] : llvm::zip(op->getRegions(), made->getRegions()))
    to.takeBody(from);
  op->replaceAllUsesWith(made);
  op->erase();
  return success();
}

} // namespace

LogicalResult makeStablehlo(ModuleOp module) {
  // Each before what is in it, so that a return sees the function around it.
  SmallVector<Operation *> found;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "vhlo")
      found.push_back(op);
  });
  for (Operation *op : found)
    if (failed(translate(op)))
      return failure();
  return success();
}

} // namespace mgpu::vhlo
