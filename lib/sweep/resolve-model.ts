/** A sweep's reference to a model, resolved by models.yaml. */
import { isAbsolute, join } from "node:path";
import type { Price } from "../attempt/usage.ts";
import { nearest, type Problem } from "../tasks/problem.ts";
import type { ModelChoice } from "./manifest-line.ts";
import type { ModelsFile } from "./models-file.ts";
import type { ModelReference } from "./sweep-file.ts";

export interface ResolvedModel {
  choice: ModelChoice;
  /**
   * Which model it is, without what differs between machines and days: addresses, sockets, the script's absolute path,
   * prices. Equal on every machine, so digests are made from it.
   */
  identity: { name: string; provider: string; api: ModelChoice["api"]; script?: string };
  /** False when nobody said what it costs; then `choice.price` is 0. */
  priced: boolean;
}

export interface ResolveContext {
  /** Path of the sweep file and of the field that names the model, for messages. */
  sweepFile: string;
  field: string;
  modelsPath: string;
  models: ModelsFile;
  /** Folder that scripts are relative to. */
  modelsFolder: string;
  /** Unix socket of the server of scripted models. */
  socket: string;
}

const free: Price = { input: 0, output: 0 };

/** The model, or what is wrong with the reference. */
export function resolveModel(reference: ModelReference, context: ResolveContext): ResolvedModel | Problem {
  const wrong = (field: string, found: string, expected: string): Problem => ({
    file: context.sweepFile,
    field: `${context.field}.${field}`,
    severity: "error",
    found,
    expected,
  });
  const { providers } = context.models;
  const provider = Object.hasOwn(providers, reference.provider) ? providers[reference.provider] : undefined;
  if (!provider) {
    const near = nearest(reference.provider, Object.keys(providers));
    const all = Object.keys(providers).join(", ") || "none";
    return wrong(
      "provider",
      `the unknown provider ${reference.provider}`,
      near ? `\`${near}\`, the nearest in ${context.modelsPath}` : `a provider of ${context.modelsPath} (${all})`,
    );
  }
  const listed = provider.models;
  if (listed && !Object.hasOwn(listed, reference.name)) {
    const near = nearest(reference.name, Object.keys(listed));
    return wrong(
      "name",
      `the unknown model ${reference.name}`,
      near
        ? `\`${near}\`, the nearest of ${reference.provider} in ${context.modelsPath}`
        : `a model of ${reference.provider} in ${context.modelsPath} (${Object.keys(listed).join(", ") || "none"})`,
    );
  }
  const own = listed?.[reference.name] ?? null;
  const stated = reference.price ?? own?.price ?? provider.price;
  const who = { name: reference.name, provider: reference.provider };
  const common = { ...who, price: stated ?? free };
  if (provider.api !== "scripted") {
    const choice: ModelChoice = {
      ...common,
      api: provider.api,
      baseUrl: provider.baseUrl,
      keyName: provider.keyName ?? null,
    };
    return { choice, identity: { ...who, api: provider.api }, priced: stated !== undefined };
  }
  const script = provider.models?.[reference.name]?.script ?? provider.script;
  if (script === undefined) {
    return {
      ...wrong(
        "name",
        "no script",
        `\`script\` at the provider or at its model ${reference.name}: the folder of its turns`,
      ),
      file: context.modelsPath,
      field: `providers.${reference.provider}`,
    };
  }
  const path = isAbsolute(script) ? script : join(context.modelsFolder, script);
  const choice: ModelChoice = { ...common, api: "scripted", socket: context.socket, script: path };
  return { choice, identity: { ...who, api: "scripted", script }, priced: true };
}
