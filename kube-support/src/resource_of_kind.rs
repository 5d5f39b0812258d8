//! The implementation of [`kube::Resource`] for types that hold an object of a kind `K` in another form.

/// Implements `Resource` for a type with a field `metadata`, with the names of the kind `K`.
macro_rules! implement_resource_of_kind {
    ([$($parameters:tt)*], $type:ty) => {
        impl<$($parameters)*> kube::Resource for $type {
            type DynamicType = K::DynamicType;
            type Scope = K::Scope;

            fn metadata_api() -> bool {
                K::metadata_api()
            }

            fn kind(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::kind(dynamic)
            }

            fn group(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::group(dynamic)
            }

            fn version(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::version(dynamic)
            }

            fn plural(dynamic: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::plural(dynamic)
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use implement_resource_of_kind;
