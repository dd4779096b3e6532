/** How a function tells the state machine what went wrong: the error's name is its name in the States Language. */

/** `error`: a name that the machines or lib/attempt/faults know, such as `Proctor.TurnExists`. */
export function functionError(error: string, message: string, options?: ErrorOptions): Error {
  const made = new Error(message, options);
  made.name = error;
  return made;
}
