// A word of ours that nothing reads is an error of the dialect's, whatever reads the text.
// RUN: mgpu-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{the devices are not an attribute of the module}}
module attributes {mgpu.device_config = 2 : i32} {
}

// -----

// expected-error @+1 {{an argument has no attribute 'mgpu.rol'; did you mean 'mgpu.role'?}}
func.func @argument(%a: tensor<4xf32> {mgpu.rol = "resident"}) {
  return
}

// -----

// expected-error @+1 {{a result has no attribute 'mgpu.expekt'; did you mean 'mgpu.expect'?}}
func.func @result(%a: tensor<4xf32>) -> (tensor<4xf32> {mgpu.expekt = 1}) {
  return %a : tensor<4xf32>
}

// -----

func.func @operation() {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'mgpu.get_device' op has no attribute 'mgpu.nmae'; did you mean 'mgpu.name'?}}
  %d = mgpu.get_device %c0 {mgpu.nmae = "x"} : !mgpu.device
  return
}

// -----

// The words of users and what passes note for each other are known.
func.func @known(%a: tensor<4xf32> {mgpu.role = "resident"}) -> (tensor<4xf32> {mgpu.expect = 1}) {
  %0 = arith.addf %a, %a {mgpu.name = "sum", mgpu.fragment = 1 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
