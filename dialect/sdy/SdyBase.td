// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_SDY_SDYBASE_TD
#define MGPU_DIALECT_SDY_SDYBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sdy_Dialect : Dialect {
  let name = "sdy";
  let cppNamespace = "::mgpu::sdy";
  let summary = "Meshes and shardings that JAX writes beside StableHLO";
  let description = [{
    The part of Shardy that exported programs use: a mesh of devices, a sharding
    of each value, and computations that say what each device does by itself.

    Example: on four devices each holds two rows, and negates them.
    ```mlir
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %0 = sdy.manual_computation(%x)
          in_shardings=[<@mesh, [{"x"}, {} ]>]
          out_shardings=[<@mesh, [{"x"}, {} ]>]
          manual_axes={"x"} (%mine: tensor<2x16xf32>) {
        %1 = stablehlo.negate %mine : tensor<2x16xf32>
        sdy.return %1 : tensor<2x16xf32>
      } : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

class Sdy_Attr<string name, string attrMnemonic> : AttrDef<Sdy_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Sdy_MeshAxisAttr : Sdy_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "The name and the size of a mesh's axis: `\"x\"=4`";
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
}

def Sdy_MeshAttr : Sdy_Attr<"Mesh", "mesh"> {
  let summary = "Devices in a grid";
  let description = [{
    Device numbers are row-major in the mesh, or `device_ids` lists them so.
    A mesh without axes has one device, the one of `device_ids` where it is
    given.

    Example:
    ```mlir
    #sdy.mesh<["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"MeshAxisAttr">:$axes,
                        ArrayRefParameter<"int64_t">:$deviceIds);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of devices.
    int64_t numDevices() const;
    /// The size of an axis; 0 where the mesh has none of this name.
    int64_t axisSize(::llvm::StringRef name) const;
    /// Where the axis stands among the axes; -1 where it is not there.
    int64_t axisIndex(::llvm::StringRef name) const;
  }];
}

def Sdy_AxisRefAttr : Sdy_Attr<"AxisRef", "axis_ref"> {
  let summary = "An axis, or a part of one: `\"x\"` or `\"x\":(2)4`";
  let description = [{
    `"x":(2)4` cuts axis `"x"` into parts of which the ones before have 2
    devices together, and takes the next of size 4.
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
                        DefaultValuedParameter<"int64_t", "1">:$preSize,
                        DefaultValuedParameter<"int64_t", "0">:$size);
  let extraClassDeclaration = [{
    /// Whether this is a part of the axis.
    bool isSubAxis() const { return getSize() != 0; }
    /// How many devices lie along it in `mesh`.
    int64_t sizeIn(MeshAttr mesh) const {
      return isSubAxis() ? getSize() : mesh.axisSize(getName());
    }
  }];
}

def Sdy_AxisListAttr : Sdy_Attr<"AxisList", "axis_ref_list"> {
  let summary = "Axes, outermost first: `{\"x\", \"y\"}`";
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes);
}

def Sdy_AxisListsAttr : Sdy_Attr<"AxisLists", "list_of_axis_ref_lists"> {
  let summary = "Axes for each dimension: `[{\"x\"}, {}]`";
  let parameters = (ins ArrayRefParameter<"AxisListAttr">:$lists);
}

def Sdy_AllToAllParamAttr : Sdy_Attr<"AllToAllParam", "all_to_all_param"> {
  let summary = "Axes that go from a dimension to another: `{\"x\"}: 0->1`";
  let parameters = (ins AttrParameter<"AxisListAttr", "">:$axes,
                        "int64_t":$from, "int64_t":$to);
}

def Sdy_AllToAllParamsAttr
    : Sdy_Attr<"AllToAllParams", "all_to_all_param_list"> {
  let summary = "All of them: `[{\"x\"}: 0->1, {\"y\"}: 1->2]`";
  let parameters = (ins ArrayRefParameter<"AllToAllParamAttr">:$params);
}

def Sdy_DimensionShardingAttr
    : Sdy_Attr<"DimensionSharding", "dimension_sharding"> {
  let summary = "Axes that cut a dimension, outermost first";
  let description = [{
    `{"x", ?}p1`: with `?` propagation may add axes, with the priority 1.
  }];
  let parameters = (ins ArrayRefParameter<"AxisRefAttr">:$axes,
                        "bool":$isClosed,
                        DefaultValuedParameter<"int64_t", "-1">:$priority);
}

def Sdy_TensorShardingAttr : Sdy_Attr<"TensorSharding", "sharding"> {
  let summary = "How a tensor is cut over a mesh";
  let description = [{
    Along axes that `unreduced` names, devices hold parts of a sum, or of
    another reduction. A mesh is a symbol's name, or written in place.

    Example: the rows are cut along axis `"x"`.
    ```mlir
    #sdy.sharding<@mesh, [{"x"}, {} ]>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$mesh,
      ArrayRefParameter<"DimensionShardingAttr">:$dims,
      ArrayRefParameter<"AxisRefAttr">:$replicated,
      ArrayRefParameter<"AxisRefAttr">:$unreduced,
      OptionalParameter<"::mlir::StringAttr">:$reduction);
}

def Sdy_TensorShardingPerValueAttr
    : Sdy_Attr<"TensorShardingPerValue", "sharding_per_value"> {
  let summary = "A sharding for each result";
  let parameters = (ins ArrayRefParameter<"TensorShardingAttr">:$shardings);
}

def Sdy_ManualAxesAttr : Sdy_Attr<"ManualAxes", "manual_axes"> {
  let summary = "Axes along which a computation is of one device";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes);
}

#endif // MGPU_DIALECT_SDY_SDYBASE_TD
