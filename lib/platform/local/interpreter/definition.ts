/**
 * The part of the States Language that our files use, as strict schemas: what is not named here is refused when a
 * machine is loaded. Source: states-language.net (JSONata dialect) and the AWS Step Functions developer guide.
 */
import { z } from "zod";
import { limits } from "./data.ts";

const expression = z.string().regex(/^\{%[\s\S]*%\}$/, "expected a number or an expression {% … %}");
const seconds = z.union([z.number().int().min(1).max(limits.seconds), expression]);
const count = z.union([z.number().int().min(0), expression]);
/** Any JSON; strings in it may be expressions. */
const template = z.json();
const assign = z.record(
  z
    .string()
    .regex(/^[\p{ID_Start}_][\p{ID_Continue}]*$/u, "expected a variable's name without $: letters, digits and _")
    .max(limits.nameLength),
  template,
);
const stateName = z.string().min(1).max(limits.nameLength);
const errorEquals = z.array(z.string().min(1)).min(1);

const retrier = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorEquals,
  IntervalSeconds: z.number().int().min(1).max(limits.seconds).default(1),
  MaxAttempts: z.number().int().min(0).max(limits.seconds).default(3),
  BackoffRate: z.number().min(1).default(2),
  MaxDelaySeconds: z.number().int().min(1).max(31_622_400).optional(),
  JitterStrategy: z.enum(["FULL", "NONE"]).default("NONE"),
});

const catcher = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorEquals,
  Next: stateName,
  Assign: assign.optional(),
  Output: template.optional(),
});

const common = { Comment: z.string().optional(), QueryLanguage: z.literal("JSONata").optional() };
const results = { Assign: assign.optional(), Output: template.optional() };
const transition = { Next: stateName.optional(), End: z.literal(true).optional() };
const faults = { Retry: z.array(retrier).optional(), Catch: z.array(catcher).optional() };

/** Each resource of a Task, as the definition writes it, and our name for it. */
export const taskResources = {
  "arn:aws:states:::lambda:invoke": "invoke",
  "arn:aws:states:::lambda:invoke.waitForTaskToken": "invokeWithToken",
  "arn:aws:states:::aws-sdk:ecs:runTask": "runTask",
  "arn:aws:states:::aws-sdk:ecs:stopTask": "stopTask",
  "arn:aws:states:::states:startExecution.sync:2": "startExecution",
} as const;
export type TaskKind = (typeof taskResources)[keyof typeof taskResources];

const task = z.strictObject({
  Type: z.literal("Task"),
  ...common,
  Resource: z.enum(Object.keys(taskResources) as [keyof typeof taskResources, ...(keyof typeof taskResources)[]]),
  Arguments: z.record(z.string(), template),
  TimeoutSeconds: seconds.optional(),
  HeartbeatSeconds: seconds.optional(),
  ...results,
  ...faults,
  ...transition,
});

const choice = z.strictObject({
  Type: z.literal("Choice"),
  ...common,
  Choices: z
    .array(z.strictObject({ Comment: z.string().optional(), Condition: z.string(), Next: stateName, ...results }))
    .min(1),
  Default: stateName.optional(),
  ...results,
});

const wait = z.strictObject({
  Type: z.literal("Wait"),
  ...common,
  Seconds: z.union([z.number().int().min(0).max(limits.seconds), expression]),
  ...results,
  ...transition,
});

const pass = z.strictObject({ Type: z.literal("Pass"), ...common, ...results, ...transition });
const succeed = z.strictObject({ Type: z.literal("Succeed"), ...common, Output: template.optional() });
const fail = z.strictObject({
  Type: z.literal("Fail"),
  ...common,
  Error: z.string().optional(),
  Cause: z.string().optional(),
});

const mapCommon = {
  Type: z.literal("Map"),
  ...common,
  ItemSelector: template.optional(),
  MaxConcurrency: count.optional(),
  ...results,
  ...faults,
  ...transition,
};
const flow = { StartAt: stateName, States: z.record(stateName, z.unknown()) };

const inlineMap = z.strictObject({
  ...mapCommon,
  Items: z.union([z.array(template), expression]).optional(),
  ItemProcessor: z.strictObject({
    ProcessorConfig: z.strictObject({ Mode: z.literal("INLINE") }).optional(),
    Comment: z.string().optional(),
    ...flow,
  }),
});

const distributedMap = z.strictObject({
  ...mapCommon,
  Label: z.string().min(1).max(40).optional(),
  ItemReader: z.strictObject({
    Resource: z.literal("arn:aws:states:::s3:getObject"),
    ReaderConfig: z.strictObject({ InputType: z.literal("JSONL") }),
    Arguments: z.strictObject({ Bucket: z.string(), Key: z.string() }),
  }),
  ItemProcessor: z.strictObject({
    ProcessorConfig: z.strictObject({ Mode: z.literal("DISTRIBUTED"), ExecutionType: z.literal("STANDARD") }),
    Comment: z.string().optional(),
    ...flow,
  }),
  ToleratedFailurePercentage: z.union([z.number().min(0).max(100), expression]).optional(),
  ToleratedFailureCount: count.optional(),
  ResultWriter: z.strictObject({
    Resource: z.literal("arn:aws:states:::s3:putObject"),
    Arguments: z.strictObject({ Bucket: z.string(), Prefix: z.string() }),
  }),
});

/** One schema for each type of state; Map is told apart by its processor's mode. */
export const stateSchemas = {
  Task: task,
  Choice: choice,
  Wait: wait,
  Pass: pass,
  Succeed: succeed,
  Fail: fail,
  InlineMap: inlineMap,
  DistributedMap: distributedMap,
} as const;

export const machineSchema = z.strictObject({
  Comment: z.string().optional(),
  QueryLanguage: z.literal("JSONata"),
  Version: z.literal("1.0").optional(),
  TimeoutSeconds: z.number().int().min(1).max(limits.seconds).optional(),
  ...flow,
});

export type RetrierDefinition = z.output<typeof retrier>;
export type CatcherDefinition = z.output<typeof catcher>;
export type TaskDefinition = z.output<typeof task>;
