// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation that the other examples leave out, each with a result to look at.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%a: memref<16xf32>, %b: memref<10xf32>,
                %gathered: memref<16xf32> {mgpu.role = "output"},
                %maximum: memref<4xf32> {mgpu.role = "output"},
                %minimum: memref<4xf32> {mgpu.role = "output"},
                %product: memref<4xf32> {mgpu.role = "output"},
                %broadcasted: memref<4xf32> {mgpu.role = "output"},
                %chained: memref<16xf32> {mgpu.role = "output"},
                %uneven: memref<10xf32> {mgpu.role = "output"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %d2 = mgpu.get_device %c2 : !mgpu.device
  %d3 = mgpu.get_device %c3 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %s2 = mgpu.create_stream %d2 : !mgpu.device -> !mgpu.stream
  %s3 = mgpu.create_stream %d3 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1, %d2, %d3 : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator
  %c16 = arith.constant 16 : index
  %one = arith.constant 1.0 : f32

  %part0, %part1, %part2, %part3 = mgpu.sharded_alloc %d0, %d1, %d2, %d3 logicalShape = [16] shardAxis = 0 shardKind = uniform
      : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>
  %whole0, %whole1, %whole2, %whole3 = mgpu.sharded_alloc %d0, %d1, %d2, %d3 logicalShape = [16] shardAxis = 0 shardKind = replicate
      : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>
  %slice0, %slice1, %slice2, %slice3 = mgpu.sharded_alloc %d0, %d1, %d2, %d3 logicalShape = [10] shardAxis = 0 shardKind = uneven
      : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> memref<3xf32>, memref<3xf32>, memref<2xf32>, memref<2xf32>
  %max0 = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  %max1 = mgpu.alloc %d1 : !mgpu.device -> memref<4xf32>
  %max2 = mgpu.alloc %d2 : !mgpu.device -> memref<4xf32>
  %max3 = mgpu.alloc %d3 : !mgpu.device -> memref<4xf32>
  %min0 = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  %min1 = mgpu.alloc %d1 : !mgpu.device -> memref<4xf32>
  %min2 = mgpu.alloc %d2 : !mgpu.device -> memref<4xf32>
  %min3 = mgpu.alloc %d3 : !mgpu.device -> memref<4xf32>
  %prod0 = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  %prod1 = mgpu.alloc %d1 : !mgpu.device -> memref<4xf32>
  %prod2 = mgpu.alloc %d2 : !mgpu.device -> memref<4xf32>
  %prod3 = mgpu.alloc %d3 : !mgpu.device -> memref<4xf32>

  // Without streams these three block the host.
  mgpu.scatter %a, %host, [%part0, %part1, %part2, %part3], [%d0, %d1, %d2, %d3] axis = 0
      : memref<16xf32>, !mgpu.device, [memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.uneven_scatter %b, %host, [%slice0, %slice1, %slice2, %slice3], [%d0, %d1, %d2, %d3] sliceSizes = [3, 3, 2, 2] axis = 0
      : memref<10xf32>, !mgpu.device, [memref<3xf32>, memref<3xf32>, memref<2xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.gather %uneven, %host, [%slice0, %slice1, %slice2, %slice3], [%d0, %d1, %d2, %d3] axis = 0
      : memref<10xf32>, !mgpu.device, [memref<3xf32>, memref<3xf32>, memref<2xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  // Collectives, on their devices' streams. The broadcast overwrites the parts of
  // ranks 0, 2 and 3 with that of rank 1.
  mgpu.all_gather %part0, %whole0, %comm stream %s0 : !mgpu.stream : memref<4xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_gather %part1, %whole1, %comm stream %s1 : !mgpu.stream : memref<4xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_gather %part2, %whole2, %comm stream %s2 : !mgpu.stream : memref<4xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_gather %part3, %whole3, %comm stream %s3 : !mgpu.stream : memref<4xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_reduce %part0, %max0, %comm, max stream %s0 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part1, %max1, %comm, max stream %s1 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part2, %max2, %comm, max stream %s2 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part3, %max3, %comm, max stream %s3 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part0, %min0, %comm, min stream %s0 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part1, %min1, %comm, min stream %s1 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part2, %min2, %comm, min stream %s2 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part3, %min3, %comm, min stream %s3 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part0, %prod0, %comm, prod stream %s0 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part1, %prod1, %comm, prod stream %s1 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part2, %prod2, %comm, prod stream %s2 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.all_reduce %part3, %prod3, %comm, prod stream %s3 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.communicator
  mgpu.broadcast %part0, %comm, %c1 stream %s0 : !mgpu.stream : memref<4xf32>, !mgpu.communicator
  mgpu.broadcast %part1, %comm, %c1 stream %s1 : !mgpu.stream : memref<4xf32>, !mgpu.communicator
  mgpu.broadcast %part2, %comm, %c1 stream %s2 : !mgpu.stream : memref<4xf32>, !mgpu.communicator
  mgpu.broadcast %part3, %comm, %c1 stream %s3 : !mgpu.stream : memref<4xf32>, !mgpu.communicator
  mgpu.memcpy %gathered, %whole3, %host, %d3 stream %s3 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %maximum, %max2, %host, %d2 stream %s2 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %minimum, %min0, %host, %d0 stream %s0 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %product, %prod1, %host, %d1 stream %s1 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %broadcasted, %part3, %host, %d3 stream %s3 : !mgpu.stream : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_device %d0 : !mgpu.device
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream

  // From device 0 to 1 to 2: a blocking peer copy, a launch on device 1's stream, and
  // a copy on device 2's stream, which waits for it. The last copy has no stream.
  %first = mgpu.alloc %d1 : !mgpu.device -> memref<16xf32>
  %second = mgpu.alloc %d2 : !mgpu.device -> memref<16xf32>
  mgpu.memcpy %first, %whole0, %d1, %d0 : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d1 grid(%c1) block(%c16) stream %s1 {
    %i = gpu.thread_id x
    %v = memref.load %first[%i] : memref<16xf32>
    %w = arith.addf %v, %one : f32
    memref.store %w, %first[%i] : memref<16xf32>
  }
  mgpu.stream_wait %s2, %s1 : !mgpu.stream, !mgpu.stream
  mgpu.memcpy %second, %first, %d2, %d1 stream %s2 : !mgpu.stream : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_device %d2 : !mgpu.device
  mgpu.memcpy %chained, %second, %host, %d2 : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device

  mgpu.sharded_free [%part0, %part1, %part2, %part3], [%d0, %d1, %d2, %d3] : [memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sharded_free [%whole0, %whole1, %whole2, %whole3], [%d0, %d1, %d2, %d3] : [memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sharded_free [%slice0, %slice1, %slice2, %slice3], [%d0, %d1, %d2, %d3] : [memref<3xf32>, memref<3xf32>, memref<2xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.free %max0, %d0 : memref<4xf32>, !mgpu.device
  mgpu.free %max1, %d1 : memref<4xf32>, !mgpu.device
  mgpu.free %max2, %d2 : memref<4xf32>, !mgpu.device
  mgpu.free %max3, %d3 : memref<4xf32>, !mgpu.device
  mgpu.free %min0, %d0 : memref<4xf32>, !mgpu.device
  mgpu.free %min1, %d1 : memref<4xf32>, !mgpu.device
  mgpu.free %min2, %d2 : memref<4xf32>, !mgpu.device
  mgpu.free %min3, %d3 : memref<4xf32>, !mgpu.device
  mgpu.free %prod0, %d0 : memref<4xf32>, !mgpu.device
  mgpu.free %prod1, %d1 : memref<4xf32>, !mgpu.device
  mgpu.free %prod2, %d2 : memref<4xf32>, !mgpu.device
  mgpu.free %prod3, %d3 : memref<4xf32>, !mgpu.device
  mgpu.free %first, %d1 : memref<16xf32>, !mgpu.device
  mgpu.free %second, %d2 : memref<16xf32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}
