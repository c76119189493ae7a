/* clang-format off */
/* The fields of plan.bin and preprocessing.bin in the order of their bytes, a row a field. The structs of plan_file.h,
 * the reader in plan_records.c, the writer backends/bundle/plan_format.cpp and backends/bundle/read_bundle.cpp are
 * expansions of these rows, so a field has the same name in all of them:
 *   F(kind, name)          one field
 *   L(kind, name, number)  a list: a 4-byte number, then the elements
 *   S(kind, bytes)         fields whose form depends on others, of at least this number of bytes; each has a
 *                          function for the kind
 * A change of the bytes or of their meaning needs a higher HOIST_FORMAT_VERSION. */
#ifndef HOIST_PLAN_FIELDS_H
#define HOIST_PLAN_FIELDS_H

/* Little-endian integers: K(kind, C type, bytes, condition for `value` in the plan read by cursor `c`, message). */
#define HOIST_INTEGER_KINDS(K) \
  K(byte, int, 1, 1, "") \
  K(count, uint32_t, 4, 1, "") \
  K(word, uint64_t, 8, 1, "") \
  K(integer, int64_t, 8, 1, "") \
  K(side, size_t, 4, 1, "")                       /* of an image */ \
  K(scalar, int, 1, value < HOIST_SCALAR_COUNT, "unknown scalar type") \
  K(place, int, 1, value <= HOIST_PLACE_CLEARED, "unknown place of an array") \
  K(device_kind, int, 1, value <= 1, "an unknown kind of device") \
  K(control_kind, int, 1, value <= 1, "an unknown kind of control") \
  K(operation_kind, int, 1, value <= HOIST_SIZE_MAXIMUM, "an unknown operation on sizes") \
  K(number_kind, int, 1, value <= HOIST_NUMBER_OPERATIONS, "an unknown kind of number") \
  K(iterations, uint64_t, 8, value <= HOIST_MOST_ITERATIONS, "a loop of too many iterations") \
  K(array_index, uint32_t, 4, value < c->plan->array_count, "an index names a missing array") \
  K(array_or_none, uint32_t, 4, value == HOIST_NO_ARRAY || value < c->plan->array_count, "an index names a missing array") \
  K(kernel_index, uint32_t, 4, value < c->plan->kernel_count, "a step names a missing kernel") \
  K(output_index, uint32_t, 4, value < c->plan->output_count, "an extent of a missing output") \
  K(model_outputs, uint32_t, 4, value <= c->plan->output_count, "the model has more outputs than the plan")

/* The other kinds of one field and their least number of bytes: K(kind, bytes). */
#define HOIST_OTHER_KINDS(K) \
  K(flag, 1)              /* 0 or not */ \
  K(number, 8)            /* a double */ \
  K(numbers, 24)          /* three */ \
  K(sizes, 24)            /* three words */ \
  K(text, 5)              /* a 4-byte length, the bytes, a zero */ \
  K(string, 4)            /* a 4-byte length, the bytes, which may be zeros */ \
  K(host_operator, 5)     /* its name as a text; "": none */

#define HOIST_TOLERANCE_FIELDS(F, L, S) \
  F(flag, exact)          /* bit-identical on devices with IEEE 754 arithmetic */ \
  F(flag, divides)        /* and only if these round division and square root correctly */ \
  F(number, relative) \
  F(number, absolute)

/* The target of the kernels. */
#define HOIST_MADE_FOR_FIELDS(F, L, S) \
  F(text, name)           /* from the target description, which has the device's name if it was derived from one */ \
  F(device_kind, is_cpu) \
  F(flag, is_serial)      /* one core computes a run faster than several that have to be woken */

#define HOIST_LISTED_FILE_FIELDS(F, L, S) \
  F(text, path)           /* inside the bundle, with '/' */ \
  F(word, bytes) \
  F(word, hash)

#define HOIST_ARRAY_FIELDS(F, L, S) \
  F(text, name) \
  F(scalar, scalar) \
  F(place, place) \
  L(integer, shape, rank) \
  F(word, offset)         /* in the arena or in the weights */ \
  F(byte, fill)           /* initial byte of a cleared array */

#define HOIST_PARAMETER_FIELDS(F, L, S) \
  F(text, name) \
  F(scalar, scalar) \
  F(flag, written) \
  L(integer, shape, rank) \
  S(domain, 16)           /* numbers low and high */ \
  S(regions, 4)           /* a count of boxes: extents before the box, extents of the box */

#define HOIST_KERNEL_FIELDS(F, L, S) \
  F(text, name) \
  F(host_operator, host)  /* none: a device runs the kernel */ \
  L(text, layers, layer_count) \
  F(sizes, global) \
  F(sizes, local) \
  F(word, local_bytes) \
  L(parameter, parameters, parameter_count) \
  F(tolerance, tolerance) \
  F(integer, operations)

#define HOIST_STEP_FIELDS(F, L, S) \
  F(kernel_index, kernel) \
  L(text, layers, layer_count) \
  L(array_index, arguments, argument_count)

/* Copies a whole array, to another one of its size or into the row of the iteration's number. */
#define HOIST_MOVE_FIELDS(F, L, S) \
  F(array_index, from) \
  F(array_index, to) \
  F(flag, is_row)

/* If or Loop: selects the steps that a run executes, and their repetitions. */
#define HOIST_CONTROL_FIELDS(F, L, S) \
  F(text, name) \
  L(text, layers, layer_count) \
  F(control_kind, is_loop) \
  F(flag, fails)          /* to continue beyond the last iteration is an error */ \
  F(iterations, most) \
  F(array_or_none, condition) \
  F(array_or_none, trips) \
  F(array_or_none, number) \
  F(array_or_none, next) \
  F(array_or_none, count) \
  L(move, before, before_count)         /* loops only: before the first iteration */ \
  L(move, after, after_count) \
  L(move, otherwise, otherwise_count)   /* branches only: after the steps of the false branch */

/* The items of a run in order. Steps and controls begin in their own order, and controls are nested. */
#define HOIST_ITEM_FIELDS(F, L, S) \
  F(byte, kind) \
  F(count, index)

/* A fused launch: consecutive steps in one launch. */
#define HOIST_LAUNCH_FIELDS(F, L, S) \
  F(text, name) \
  F(count, first)         /* step */ \
  F(count, count)         /* steps */

#define HOIST_INPUT_FIELDS(F, L, S) \
  F(array_index, array) \
  F(number, low) \
  F(number, high)

/* A value that lives between runs: the last inputs of the plan, in order. */
#define HOIST_STATE_FIELDS(F, L, S) \
  F(array_index, read) \
  F(array_index, written) /* its value in the next run: an output after the model's */ \
  F(array_or_none, initial)             /* none: zeros */

/* A state in a file of saved states, before its bytes. */
#define HOIST_SAVED_STATE_FIELDS(F, L, S) \
  F(text, name) \
  F(scalar, scalar) \
  L(integer, shape, rank) \
  F(word, bytes)

/* A dynamic dimension of an output, and the output that holds its length: one i64. */
#define HOIST_EXTENT_FIELDS(F, L, S) \
  F(output_index, output) \
  F(count, dimension) \
  F(output_index, count)

/* A set of sizes that the model is compiled for. The first one is the plan that lists them all; each other one has a
 * plan of its own in a folder inside the bundle. */
#define HOIST_SPECIALISATION_FIELDS(F, L, S) \
  F(text, folder)         /* "" for the first */ \
  S(sizes_and_shapes, 0)  /* a word per name of a size, a list of extents per input */

/* A size that a run chooses. Native kernels have the sizes as arguments (int32_t), in order, before the arrays. */
#define HOIST_OPEN_SIZE_FIELDS(F, L, S) \
  F(text, name) \
  F(integer, least) \
  F(integer, most)

/* An operation on a stack: see HOIST_SIZE_CONSTANT and the following. */
#define HOIST_OPERATION_FIELDS(F, L, S) \
  F(operation_kind, kind) \
  F(integer, value)       /* the constant, or the index of the open size */

/* A number of the plan that depends on open sizes: the plan has its value for the largest ones. */
#define HOIST_OPEN_NUMBER_FIELDS(F, L, S) \
  F(number_kind, kind) \
  F(count, owner)         /* index of the array or kernel */ \
  F(count, dimension) \
  L(operation, value, operation_count)

#define HOIST_PLAN_FIELDS(F, L, S) \
  F(text, model_name) \
  F(word, model_hash) \
  F(made_for, made_for) \
  F(text, build_options) \
  L(text, targets, target_count)        /* targets of native code, each with all kernels; none: OpenCL C */ \
  F(word, arena_bytes) \
  F(word, weights_bytes) \
  L(listed_file, files, file_count) \
  L(array, arrays, array_count) \
  L(kernel, kernels, kernel_count) \
  L(step, steps, step_count) \
  L(control, controls, control_count) \
  S(items, 0)                           /* a list if there are controls; without them the steps */ \
  L(launch, launches, launch_count)     /* in the order of their steps; no control begins or ends within a launch */ \
  L(input, inputs, input_count) \
  L(array_index, outputs, output_count) \
  F(model_outputs, model_output_count)  /* the model's outputs come first, then the counts of extents */ \
  L(extent, extents, extent_count) \
  L(string, strings, string_count)      /* the strings whose handles weights and kernels contain */ \
  L(text, size_names, size_count)       /* none if the model is compiled for one set of sizes */ \
  L(specialisation, specialisations, specialisation_count) \
  S(states, 0)                          /* a list if there are states or open sizes; else the plan ends here */ \
  S(open_sizes, 0)                      /* lists of open sizes and open numbers; without them the plan ends here */

/* How pixels become an input: the fields of hoist_preprocessing that do not follow from the input's shape.
 * preprocessing.bin is a list of inputs, each a count and these fields. */
#define HOIST_PIXELS_FIELDS(F, L, S) \
  F(flag, channels_first) \
  F(flag, blue_first) \
  F(flag, crop) \
  F(side, resize_rows) \
  F(side, resize_columns) \
  F(number, scale) \
  F(numbers, mean) \
  F(numbers, deviation)

/* The records, inner ones first: R(kind, fields), or P(kind, fields) if the fields need no check of the whole record. */
#define HOIST_PLAN_RECORDS(R, P) \
  R(tolerance, HOIST_TOLERANCE_FIELDS) \
  P(made_for, HOIST_MADE_FOR_FIELDS) \
  R(listed_file, HOIST_LISTED_FILE_FIELDS) \
  R(array, HOIST_ARRAY_FIELDS) \
  R(parameter, HOIST_PARAMETER_FIELDS) \
  R(kernel, HOIST_KERNEL_FIELDS) \
  R(step, HOIST_STEP_FIELDS) \
  P(move, HOIST_MOVE_FIELDS) \
  R(control, HOIST_CONTROL_FIELDS) \
  P(item, HOIST_ITEM_FIELDS) \
  R(launch, HOIST_LAUNCH_FIELDS) \
  R(input, HOIST_INPUT_FIELDS) \
  R(state, HOIST_STATE_FIELDS) \
  P(saved_state, HOIST_SAVED_STATE_FIELDS) \
  R(extent, HOIST_EXTENT_FIELDS) \
  R(specialisation, HOIST_SPECIALISATION_FIELDS) \
  R(open_size, HOIST_OPEN_SIZE_FIELDS) \
  P(operation, HOIST_OPERATION_FIELDS) \
  R(open_number, HOIST_OPEN_NUMBER_FIELDS) \
  P(pixels, HOIST_PIXELS_FIELDS)

/* clang-format on */

#endif
