// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Answers MLIR's reader of bytecode: which operations there are, and which
// attributes each has.
#include "dialect/vhlo/Vhlo.h"

#include "dialect/stablehlo/Companions.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/ExtensibleDialect.h"

namespace mgpu::vhlo {

using namespace mlir;
using llvm::StringLiteral;

namespace {

class VhloDialect : public ExtensibleDialect {
public:
  explicit VhloDialect(MLIRContext *context);
  static StringRef getDialectNamespace() { return "vhlo"; }

  llvm::StringMap<SmallVector<StringRef>> attributes; ///< by versioned name

private:
  void add(StringRef name, ArrayRef<StringAttr> ofStablehlo);
};

struct ReadAttributes
    : BytecodeOpInterface::ExternalModel<ReadAttributes, Operation *> {
  static LogicalResult readProperties(DialectBytecodeReader &reader,
                                      OperationState &state) {
    auto *vhlo = reader.getContext()->getLoadedDialect<VhloDialect>();
    for (StringRef name : vhlo->attributes.lookup(state.name.stripDialect())) {
      Attribute value;
      if (failed(reader.readAttribute(value)))
        return failure();
      state.addAttribute(name, value);
    }
    return success();
  }
  void writeProperties(Operation *, DialectBytecodeWriter &) const {}
};

class VhloBytecode : public BytecodeDialectInterface {
public:
  explicit VhloBytecode(Dialect *dialect) : BytecodeDialectInterface(dialect) {}
  Type readType(DialectBytecodeReader &reader) const override {
    return vhlo::readType(reader);
  }
  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    return vhlo::readAttribute(reader);
  }
};

/// An operation that has other attributes in VHLO than in StableHLO.
struct Differs {
  StringLiteral name;
  std::initializer_list<StringLiteral> attributes;
};

const Differs differing[] = {
    {"func_v1",
     {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"}},
    {"call_v1", {"callee"}},
    {"collective_broadcast_v1", {"channel_id", "replica_groups"}},
    {"custom_call_v1",
     {"api_version", "backend_config", "call_target_name",
      "called_computations", "has_side_effect", "operand_layouts",
      "output_operand_aliases", "result_layouts"}},
    {"dot_general_v1",
     {"lhs_batching_dimensions", "lhs_contracting_dimensions",
      "precision_config", "rhs_batching_dimensions",
      "rhs_contracting_dimensions"}},
    {"dot_general_v2",
     {"accumulation_type", "allow_imprecise_accumulation",
      "lhs_batching_dimensions", "lhs_component_count",
      "lhs_contracting_dimensions", "lhs_precision_type",
      "num_primitive_operations", "precision_config", "rhs_batching_dimensions",
      "rhs_component_count", "rhs_contracting_dimensions",
      "rhs_precision_type"}},
    {"convolution_v1",
     {"batch_group_count", "feature_group_count", "input_batch_dimension",
      "input_feature_dimension", "input_spatial_dimensions",
      "kernel_input_feature_dimension", "kernel_output_feature_dimension",
      "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension",
      "output_feature_dimension", "output_spatial_dimensions", "padding",
      "precision_config", "rhs_dilation", "window_reversal", "window_strides"}},
    {"dynamic_conv_v2",
     {"batch_group_count", "feature_group_count", "input_batch_dimension",
      "input_feature_dimension", "input_spatial_dimensions",
      "kernel_input_feature_dimension", "kernel_output_feature_dimension",
      "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension",
      "output_feature_dimension", "output_spatial_dimensions",
      "precision_config", "rhs_dilation", "window_reversal", "window_strides"}},
    {"gather_v1",
     {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted",
      "offset_dims", "slice_sizes", "start_index_map"}},
    {"gather_v2",
     {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted",
      "offset_dims", "operand_batching_dims", "slice_sizes", "start_index_map",
      "start_indices_batching_dims"}},
    {"dynamic_gather_v1",
     {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted",
      "offset_dims", "start_index_map"}},
    {"dynamic_gather_v2",
     {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted",
      "offset_dims", "operand_batching_dims", "start_index_map",
      "start_indices_batching_dims"}},
    {"scatter_v1",
     {"index_vector_dim", "indices_are_sorted", "inserted_window_dims",
      "scatter_dims_to_operand_dims", "unique_indices", "update_window_dims"}},
    {"scatter_v2",
     {"index_vector_dim", "indices_are_sorted", "input_batching_dims",
      "inserted_window_dims", "scatter_dims_to_operand_dims",
      "scatter_indices_batching_dims", "unique_indices", "update_window_dims"}},
    {"recv_v1", {"channel_id", "channel_type", "is_host_transfer"}},
    {"send_v1", {"channel_id", "channel_type", "is_host_transfer"}},
    {"recv_v2",
     {"channel_id", "channel_type", "is_host_transfer", "source_target_pairs"}},
    {"send_v2",
     {"channel_id", "channel_type", "is_host_transfer", "source_target_pairs"}},
};

/// Whether an operation has a second version.
bool hasSecondVersion(StringRef name) {
  return llvm::is_contained({"all_gather",
                             "all_reduce",
                             "all_to_all",
                             "cbrt",
                             "composite",
                             "collective_broadcast",
                             "cosine",
                             "custom_call",
                             "dot_general",
                             "dynamic_conv",
                             "dynamic_gather",
                             "exponential",
                             "exponential_minus_one",
                             "gather",
                             "log",
                             "log_plus_one",
                             "logistic",
                             "recv",
                             "rsqrt",
                             "scatter",
                             "send",
                             "sine",
                             "sqrt",
                             "tan",
                             "tanh"},
                            name);
}

/// The names of the attributes of "abs_v1", ... as VHLO stores them, in
/// alphabetical order. `ofStablehlo` are those of the operation it stands for.
SmallVector<StringRef> attributesOf(StringRef versioned,
                                    ArrayRef<StringAttr> ofStablehlo) {
  // It has the padding twice: as an operand and, without a meaning, here.
  if (versioned == "dynamic_conv_v1")
    versioned = "convolution_v1";
  for (const Differs &each : differing)
    if (each.name == versioned)
      return llvm::to_vector_of<StringRef>(each.attributes);
  SmallVector<StringRef> names;
  for (StringAttr name : ofStablehlo)
    if (name == "channel_handle")
      names.push_back("channel_id");
    else if (name != "result_accuracy" || versioned.ends_with("_v2"))
      names.push_back(name);
  llvm::sort(names);
  return names;
}

} // namespace

VhloDialect::VhloDialect(MLIRContext *context)
    : ExtensibleDialect(getDialectNamespace(), context,
                        TypeID::get<VhloDialect>()) {
  addInterfaces<VhloBytecode>();
  context->getOrLoadDialect<stablehlo::StablehloDialect>();
  context->getOrLoadDialect<func::FuncDialect>();
  context->getOrLoadDialect<quant::QuantDialect>();
  // Copied, as each that is added moves them.
  for (RegisteredOperationName op :
       llvm::to_vector(context->getRegisteredOperations()))
    if (op.getDialectNamespace() == "stablehlo")
      add(op.stripDialect(), op.getAttributeNames());
  for (StringRef name : {"func", "call"})
    add(name, {});
}

void VhloDialect::add(StringRef name, ArrayRef<StringAttr> ofStablehlo) {
  for (StringRef version : {"_v1", "_v2"}) {
    if (version == "_v2" && !hasSecondVersion(name))
      continue;
    const std::string versioned = (name + version).str();
    attributes[versioned] = attributesOf(versioned, ofStablehlo);
    auto accept = [](Operation *) { return success(); };
    auto op = DynamicOpDefinition::get(versioned, this, accept, accept);
    registerDynamicOp(std::move(op));
    RegisteredOperationName::lookup("vhlo." + versioned, getContext())
        ->attachInterface<ReadAttributes>();
  }
}

void registerDialects(DialectRegistry &registry) {
  stablehlo::registerDialects(registry);
  addSdyBytecode(registry);
  registry.insert<VhloDialect, func::FuncDialect>();
}

} // namespace mgpu::vhlo
