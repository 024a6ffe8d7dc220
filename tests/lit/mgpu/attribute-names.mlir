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

// -----

func.func @mark_of_another_type(%d: !mgpu.device) {
  // expected-error @+1 {{'mgpu.alloc' op has 'mgpu.mark', which is no #mgpu.mark}}
  %a = mgpu.alloc %d {mgpu.mark = "forwarded"} : !mgpu.device -> memref<4xf32>
  return
}

// -----

func.func @mark_elsewhere(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'memref.load' op has the mark 'forwarded', which is for 'mgpu.alloc'}}
  %x = memref.load %a[%c0] {mgpu.mark = #mgpu.mark<forwarded>} : memref<4xf32>
  return
}

// -----

// Of several marks each must be in its place.
func.func @one_of_two(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' op has the mark 'in_order', which is for functions}}
  scf.for %i = %c0 to %n step %c1 {
  } {mgpu.mark = #mgpu.mark<whole_loop|in_order>}
  return
}

// -----

func.func @in_place(%n: index, %d: !mgpu.device) attributes {mgpu.mark = #mgpu.mark<in_order|one_device>} {
  %c0 = arith.constant {mgpu.mark = #mgpu.mark<global_x>} 0 : index
  %c1 = arith.constant 1 : index
  %a = mgpu.alloc %d {mgpu.mark = #mgpu.mark<forwarded|device_only>} : !mgpu.device -> memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
  } {mgpu.mark = #mgpu.mark<product_loop|whole_loop>}
  return
}
