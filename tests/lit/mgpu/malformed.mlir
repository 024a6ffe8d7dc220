// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// A verifier that looks at another operation may see it before that one was
// checked: operations of the wrong arity must be an error, never a crash.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>
func.func @get_device_without_index() {
  // expected-error @below {{'mgpu.get_device' op requires a single operand}}
  %d = "mgpu.get_device"() : () -> !mgpu.device
  return
}

// -----

// The top level has no order: the use comes first.
// expected-error @below {{'mgpu.create_communicator' op devices 0 and 1 of the communicator are the same [create_communicator_c2]}}
%c = "mgpu.create_communicator"(%d, %d) : (!mgpu.device, !mgpu.device) -> !mgpu.communicator
%d = "mgpu.get_device"() : () -> !mgpu.device

// -----

"mgpu.free"(%p, %d) : (memref<4xf32>, !mgpu.device) -> ()
%d = "mgpu.get_device"() : () -> !mgpu.device
// expected-error @above {{'mgpu.get_device' op requires a single operand}}
%p = "mgpu.alloc"() : () -> memref<4xf32>

// -----

"mgpu.sharded_free"(%p#1, %d) <{operandSegmentSizes = array<i32: 1, 1>}> : (memref<4xf32>, !mgpu.device) -> ()
// expected-error @below {{'mgpu.get_device' op requires a single operand}}
%d = "mgpu.get_device"() : () -> !mgpu.device
%p:2 = "mgpu.sharded_alloc"(%d) {logicalShape = array<i64: 4>, shardAxis = 0 : index, shardKind = #mgpu.shard_kind<replicate>} : (!mgpu.device) -> (memref<4xf32>, memref<4xf32>)

// -----

%i = arith.constant 5 : index
"mgpu.broadcast"(%b, %c, %i) : (memref<4xf32>, !mgpu.communicator, index) -> ()
%b = memref.alloc() : memref<4xf32>
// expected-error @below {{'mgpu.create_communicator' op expected at least one device [create_communicator_c1]}}
%c = "mgpu.create_communicator"() : () -> !mgpu.communicator

// -----

// expected-error @below {{'mgpu.scatter' op}}
"mgpu.scatter"() : () -> ()

// -----

// expected-error @below {{'mgpu.memcpy' op expected 4 or more operands, but found 0}}
"mgpu.memcpy"() : () -> ()

// -----

// expected-error @below {{'mgpu.all_reduce' op expected 3 or more operands, but found 0}}
"mgpu.all_reduce"() : () -> ()

// -----

func.func @no_kind(%c: !mgpu.communicator, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.all_reduce' op requires attribute 'reductionKind'}}
  "mgpu.all_reduce"(%a, %a, %c) : (memref<4xf32>, memref<4xf32>, !mgpu.communicator) -> ()
  return
}

// -----

func.func @unranked(%d: !mgpu.device, %a: memref<*xf32>) {
  // expected-error @below {{invalid kind of type specified: expected builtin.memref, but found 'memref<*xf32>'}}
  mgpu.free %a, %d : memref<*xf32>, !mgpu.device
  return
}
