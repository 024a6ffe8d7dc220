// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLOBASE_TD
#define MGPU_DIALECT_STABLEHLO_STABLEHLOBASE_TD

include "dialect/stablehlo/StablehloTypes.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Stablehlo_Enum<string name, list<string> cases>
    : I32EnumAttr<name, "", !foreach(index, !range(!size(cases)),
          I32EnumAttrCase<cases[index], index>)> {
  let cppNamespace = "::mgpu::stablehlo";
  let genSpecializedAttr = 0;
}

class Stablehlo_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Stablehlo_Dialect, info, mnemonic>;

def Stablehlo_ComparisonDirection
    : Stablehlo_Enum<"ComparisonDirection", ["EQ", "NE", "GE", "GT", "LE", "LT"]>;
def Stablehlo_ComparisonDirectionAttr
    : Stablehlo_EnumAttr<Stablehlo_ComparisonDirection, "comparison_direction">;

def Stablehlo_ComparisonType : Stablehlo_Enum<"ComparisonType",
    ["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]>;
def Stablehlo_ComparisonTypeAttr
    : Stablehlo_EnumAttr<Stablehlo_ComparisonType, "comparison_type">;

def Stablehlo_Precision
    : Stablehlo_Enum<"Precision", ["DEFAULT", "HIGH", "HIGHEST"]>;
def Stablehlo_PrecisionAttr
    : Stablehlo_EnumAttr<Stablehlo_Precision, "precision">;
def Stablehlo_PrecisionConfigAttr
    : TypedArrayAttrBase<Stablehlo_PrecisionAttr, "precisions">;

def Stablehlo_Transpose : Stablehlo_Enum<"Transpose",
    ["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]>;
def Stablehlo_TransposeAttr
    : Stablehlo_EnumAttr<Stablehlo_Transpose, "transpose">;

def Stablehlo_FftType
    : Stablehlo_Enum<"FftType", ["FFT", "IFFT", "RFFT", "IRFFT"]>;
def Stablehlo_FftTypeAttr : Stablehlo_EnumAttr<Stablehlo_FftType, "fft_type">;

def Stablehlo_RngDistribution : I32EnumAttr<"RngDistribution", "", [
    I32EnumAttrCase<"UNIFORM", 1>, I32EnumAttrCase<"NORMAL", 2>]> {
  let cppNamespace = "::mgpu::stablehlo";
  let genSpecializedAttr = 0;
}
def Stablehlo_RngDistributionAttr
    : Stablehlo_EnumAttr<Stablehlo_RngDistribution, "rng_distribution">;

def Stablehlo_RngAlgorithm
    : Stablehlo_Enum<"RngAlgorithm", ["DEFAULT", "THREE_FRY", "PHILOX"]>;
def Stablehlo_RngAlgorithmAttr
    : Stablehlo_EnumAttr<Stablehlo_RngAlgorithm, "rng_algorithm">;

def Stablehlo_ResultAccuracyMode
    : Stablehlo_Enum<"ResultAccuracyMode", ["DEFAULT", "HIGHEST", "TOLERANCE"]>;
def Stablehlo_ResultAccuracyModeAttr
    : Stablehlo_EnumAttr<Stablehlo_ResultAccuracyMode, "result_accuracy_mode"> {
  let assemblyFormat = "`<` $value `>`";
}

// A plain number in the generic form: `api_version = 4 : i32`.
def Stablehlo_CustomCallApiVersionAttr : I32EnumAttr<"CustomCallApiVersion", "", [
    I32EnumAttrCase<"API_VERSION_UNSPECIFIED", 0>,
    I32EnumAttrCase<"API_VERSION_ORIGINAL", 1>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING", 2>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING_UNIFIED", 3>,
    I32EnumAttrCase<"API_VERSION_TYPED_FFI", 4>]> {
  let cppNamespace = "::mgpu::stablehlo";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Stablehlo_Attr<string name, string attrMnemonic>
    : AttrDef<Stablehlo_Dialect, name> {
  let mnemonic = attrMnemonic;
}

// Lists of dimensions by name; an empty one is not printed.
class Stablehlo_DimsAttr<string name, string attrMnemonic>
    : Stablehlo_Attr<name, attrMnemonic> {
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_DotDimensionNumbersAttr
    : Stablehlo_DimsAttr<"DotDimensionNumbers", "dot"> {
  let summary = "Which dimensions of a product are paired";
  let parameters = (ins
      ArrayRefParameter<"int64_t">:$lhsBatchingDimensions,
      ArrayRefParameter<"int64_t">:$rhsBatchingDimensions,
      ArrayRefParameter<"int64_t">:$lhsContractingDimensions,
      ArrayRefParameter<"int64_t">:$rhsContractingDimensions);
}

def Stablehlo_GatherDimensionNumbersAttr
    : Stablehlo_DimsAttr<"GatherDimensionNumbers", "gather"> {
  let summary = "What the dimensions of a gather mean";
  let parameters = (ins ArrayRefParameter<"int64_t">:$offsetDims,
      ArrayRefParameter<"int64_t">:$collapsedSliceDims,
      ArrayRefParameter<"int64_t">:$operandBatchingDims,
      ArrayRefParameter<"int64_t">:$startIndicesBatchingDims,
      ArrayRefParameter<"int64_t">:$startIndexMap,
      "int64_t":$indexVectorDim);
}

def Stablehlo_ScatterDimensionNumbersAttr
    : Stablehlo_DimsAttr<"ScatterDimensionNumbers", "scatter"> {
  let summary = "What the dimensions of a scatter mean";
  let parameters = (ins ArrayRefParameter<"int64_t">:$updateWindowDims,
      ArrayRefParameter<"int64_t">:$insertedWindowDims,
      ArrayRefParameter<"int64_t">:$inputBatchingDims,
      ArrayRefParameter<"int64_t">:$scatterIndicesBatchingDims,
      ArrayRefParameter<"int64_t">:$scatterDimsToOperandDims,
      "int64_t":$indexVectorDim);
}

def Stablehlo_ConvDimensionNumbersAttr
    : Stablehlo_DimsAttr<"ConvDimensionNumbers", "conv"> {
  let summary = "What the dimensions of a convolution mean";
  let description = [{
    `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: batch, feature, and the spatial
    dimensions by number; of the kernel, input and output feature.
  }];
  let parameters = (ins "int64_t":$inputBatchDimension,
      "int64_t":$inputFeatureDimension,
      ArrayRefParameter<"int64_t">:$inputSpatialDimensions,
      "int64_t":$kernelInputFeatureDimension,
      "int64_t":$kernelOutputFeatureDimension,
      ArrayRefParameter<"int64_t">:$kernelSpatialDimensions,
      "int64_t":$outputBatchDimension,
      "int64_t":$outputFeatureDimension,
      ArrayRefParameter<"int64_t">:$outputSpatialDimensions);
}

def Stablehlo_DotAlgorithmAttr
    : Stablehlo_Attr<"DotAlgorithm", "dot_algorithm"> {
  let summary = "The types that a product computes in";
  let parameters = (ins "::mlir::Type":$lhsPrecisionType,
      "::mlir::Type":$rhsPrecisionType, "::mlir::Type":$accumulationType,
      "int64_t":$lhsComponentCount, "int64_t":$rhsComponentCount,
      "int64_t":$numPrimitiveOperations, "bool":$allowImpreciseAccumulation);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The fields between the brackets, which the product prints too.
    static ::mlir::FailureOr<DotAlgorithmAttr>
    parseFields(::mlir::AsmParser &parser);
    void printFields(::mlir::AsmPrinter &printer) const;
  }];
}

def Stablehlo_ChannelHandleAttr
    : Stablehlo_Attr<"ChannelHandle", "channel_handle"> {
  let summary = "The channel of a collective";
  let parameters = (ins "int64_t":$handle, "int64_t":$type);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Stablehlo_OutputOperandAliasAttr
    : Stablehlo_DimsAttr<"OutputOperandAlias", "output_operand_alias"> {
  let summary = "A result of a custom call that shares an operand's memory";
  let parameters = (ins ArrayRefParameter<"int64_t">:$outputTupleIndices,
      "int64_t":$operandIndex,
      ArrayRefParameter<"int64_t">:$operandTupleIndices);
}

def Stablehlo_TypeExtensionsAttr
    : Stablehlo_Attr<"TypeExtensions", "bounds"> {
  let summary = "Bounds of a tensor's dynamic sizes";
  let parameters = (ins ArrayRefParameter<"int64_t">:$bounds);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_ResultAccuracyAttr
    : Stablehlo_Attr<"ResultAccuracy", "result_accuracy"> {
  let summary = "How accurate a result must be";
  let parameters = (ins OptionalParameter<"::mlir::FloatAttr">:$atol,
      OptionalParameter<"::mlir::FloatAttr">:$rtol,
      DefaultValuedParameter<"int64_t", "0">:$ulps,
      Stablehlo_ResultAccuracyModeAttr:$mode);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_AxisRefAttr : Stablehlo_Attr<"AxisRef", "axis_ref"> {
  let summary = "An axis of a mesh, or a part of one";
  let parameters = (ins "::mlir::StringAttr":$name,
      DefaultValuedParameter<"int64_t", "1">:$preSize,
      DefaultValuedParameter<"int64_t", "0">:$size);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_MeshAxisAttr : Stablehlo_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "The name and the size of a mesh's axis";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Stablehlo_MeshAttr : Stablehlo_Attr<"Mesh", "mesh"> {
  let summary = "A mesh of devices, written where it is used";
  let parameters = (ins ArrayRefParameter<"MeshAxisAttr">:$axes,
      OptionalParameter<"::mlir::DenseIntElementsAttr">:$deviceIds);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_ReplicaGroupMeshAxesAttr
    : Stablehlo_Attr<"ReplicaGroupMeshAxes", "replica_group_mesh_axes"> {
  let summary = "Groups of devices that differ along some axes of a mesh";
  let parameters = (ins "::mlir::Attribute":$mesh,
      ArrayRefParameter<"AxisRefAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
}

def Stablehlo_ReplicaGroupsAttr : Attr<
    Or<[I64ElementsAttr.predicate,
        CPred<"::llvm::isa<::mgpu::stablehlo::ReplicaGroupMeshAxesAttr>($_self)">]>,
    "replica groups: a matrix of 64-bit integers, or axes of a mesh"> {
  let storageType = "::mlir::Attribute";
  let returnType = "::mlir::Attribute";
  let convertFromStorage = "$_self";
}

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLOBASE_TD
